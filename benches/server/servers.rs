//! The servers that are compared. All have the same binary and different modules, and are killed on drop.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::resp::{Connection, Reply};

/// The longest time until a new server answers.
const START: Duration = Duration::from_secs(60);

/// A running server and a connection to it.
pub struct Server {
    child: Child,
    dir: TempDir,
    port: u16,
    binary: String,
    modules: Vec<PathBuf>,
    /// Options that were set, each with its value.
    settings: Vec<String>,
    /// The connection for all work that needs only one.
    pub client: Connection,
}

impl Server {
    /// Starts `binary` with these modules on a free port.
    pub fn start(binary: &str, modules: &[&Path]) -> Server {
        for _ in 0..5 {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
            let port = listener.local_addr().expect("its address").port();
            drop(listener);
            let mut command = Command::new(binary);
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
            // The slow log and the latency percentiles would add work to every command.
            command.args(["--slowlog-log-slower-than", "-1", "--latency-tracking", "no"]);
            command.args(["--enable-debug-command", "yes", "--logfile", "server.log", "--proto-max-bulk-len", "1gb"]);
            for module in modules {
                command.arg("--loadmodule").arg(module);
            }
            command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {binary}: {error}"));
            let end = Instant::now() + START;
            while Instant::now() < end && child.try_wait().expect("the child's status").is_none() {
                if let Ok(mut client) = Connection::open(port)
                    && client.try_call("INFO server").is_ok_and(|info| is_process(&info, child.id()))
                {
                    let modules = modules.iter().map(|module| module.to_path_buf()).collect();
                    let binary = binary.to_owned();
                    return Server { child, dir, port, binary, modules, settings: Vec::new(), client };
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
            let log = fs::read_to_string(dir.path().join("server.log")).unwrap_or_default();
            assert!(log.contains("in use"), "{binary} did not start; its log:\n{log}");
        }
        panic!("no free port found");
    }

    /// Sets an option in this server, and in every server that [`Server::another`] starts from now on.
    pub fn configure(&mut self, setting: &str) {
        self.call(&format!("CONFIG SET {setting}"));
        self.settings.push(setting.to_owned());
    }

    /// Starts another, empty server with the same binary, modules and settings.
    pub fn another(&self) -> Server {
        let modules: Vec<_> = self.modules.iter().map(PathBuf::as_path).collect();
        let mut server = Server::start(&self.binary, &modules);
        self.settings.iter().for_each(|setting| server.configure(setting));
        server
    }

    /// Opens another connection.
    pub fn connect(&self) -> Connection {
        Connection::open(self.port).expect("the server takes a connection")
    }

    /// A connection by redis-rs, the client library that applications use.
    pub fn library(&self) -> redis::Connection {
        let client = redis::Client::open(("127.0.0.1", self.port)).expect("an address");
        client.get_connection().expect("the server takes a connection")
    }

    /// The address of the server, in the form that REPLICAOF takes.
    pub fn address(&self) -> String {
        format!("127.0.0.1 {}", self.port)
    }

    /// The process id of the server.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command over [`Server::client`].
    pub fn call(&mut self, command: &str) -> Reply {
        self.client.call(command)
    }

    /// A field of INFO, as a number.
    pub fn info(&mut self, field: &str) -> f64 {
        let info = self.call("INFO everything").text();
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("INFO has no number {field}"))
    }

    /// Bytes of memory that are resident in the process.
    pub fn resident_bytes(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process's status");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        kilobytes.and_then(|text| text.trim().parse::<f64>().ok()).expect("its resident size") * 1024.0
    }

    /// The file that SAVE writes.
    pub fn rdb(&self) -> PathBuf {
        self.dir.path().join("dump.rdb")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if ended {
            let log = fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default();
            eprintln!("a server with {:?} ended by itself; its log:\n{log}", self.modules);
        }
    }
}

/// Whether the reply to INFO came from the child process; another server may have taken the port.
fn is_process(info: &Reply, id: u32) -> bool {
    let line = format!("process_id:{id}");
    info.text().lines().any(|found| found.trim() == line)
}
