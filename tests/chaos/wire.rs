//! A fast connection that uses little processor time, so that the server is the bottleneck. It speaks only RESP2.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::Value;

use crate::key::Command;

pub struct Wire {
    replies: BufReader<TcpStream>,
}

impl Wire {
    /// Connects to a port of this host; `None` if nobody listens there. Each reply may take `patience`.
    pub fn connect(port: u16, patience: Duration) -> Option<Wire> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        stream.set_write_timeout(Some(patience)).ok()?;
        Some(Wire { replies: BufReader::with_capacity(1 << 16, stream) })
    }

    /// Sends commands together and returns the replies. There are fewer replies than commands if the server goes away.
    pub fn ask(&mut self, commands: &[Command]) -> Vec<Value> {
        let mut packed = Vec::with_capacity(commands.iter().flatten().map(|word| word.len() + 16).sum());
        for command in commands {
            let _ = write!(packed, "*{}\r\n", command.len());
            for word in command {
                let _ = write!(packed, "${}\r\n", word.len());
                packed.extend_from_slice(word);
                packed.extend_from_slice(b"\r\n");
            }
        }
        // Replies to what went out before the server did may have arrived.
        let _ = self.replies.get_mut().write_all(&packed);
        commands.iter().map_while(|_| self.receive()).collect()
    }

    fn receive(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        self.replies.read_until(b'\n', &mut line).ok()?;
        let text = line.strip_suffix(b"\r\n")?;
        let number = || str::from_utf8(&text[1..]).ok()?.parse::<i64>().ok();
        Some(match text.first()? {
            b':' => Value::Int(number()?),
            b'+' if &text[1..] == b"OK" => Value::Okay,
            b'$' | b'*' if number()? < 0 => Value::Nil,
            b'$' => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.replies.read_exact(&mut bytes).ok()?;
                bytes.truncate(bytes.len() - 2);
                Value::BulkString(bytes)
            }
            b'*' => {
                let mut items = Vec::new();
                for _ in 0..number()? {
                    items.push(self.receive()?);
                }
                Value::Array(items)
            }
            // Other strings and errors, as the crate reads them.
            _ => redis::parse_redis_value(&line).ok()?,
        })
    }
}
