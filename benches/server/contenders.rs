//! Two servers of one binary, one with Rollcall and one with RedisBloom, and the time that they take.

use std::fs;
use std::time::Instant;

use rollcall_testkit::{Client, Server, Setup, field, number, optional_file, pack};

use crate::items::{Call, Item, Items, LIST};

/// A server with a connection to it.
pub struct Contender {
    pub server: Server,
    pub client: Client,
    /// Whether its module is Rollcall.
    pub is_ours: bool,
}

/// Rollcall and RedisBloom.
pub struct Pair(pub [Contender; 2]);

impl Pair {
    /// Starts two empty servers.
    pub fn start() -> Pair {
        // Latency percentiles would add work to every command.
        let setup = Setup::default().line("latency-tracking no");
        let peer = optional_file("ROLLCALL_PEER").expect("RedisBloom: run `make bench`");
        let contender = |setup: Setup, is_ours| {
            let server = setup.start();
            Contender { client: server.client(), server, is_ours }
        };
        let ours = contender(setup.clone().args("max-key-bytes 4gb"), true);
        Pair([ours, contender(setup.module(&peer), false)])
    }

    /// Measures Rollcall, then RedisBloom, with the same function.
    pub fn round<const N: usize>(&mut self, mut measure: impl FnMut(&mut Contender) -> [f64; N]) -> [[f64; N]; 2] {
        self.0.each_mut().map(&mut measure)
    }
}

/// The median of each figure over all rounds, for Rollcall and for RedisBloom.
pub fn medians<const N: usize>(rounds: &[[[f64; N]; 2]]) -> [[f64; 2]; N] {
    std::array::from_fn(|figure| {
        [0, 1].map(|contender| {
            let mut sorted: Vec<f64> = rounds.iter().map(|round| round[contender][figure]).collect();
            sorted.sort_by(f64::total_cmp);
            (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
        })
    })
}

/// The calls as bytes to send, followed by a call whose reply marks the end.
pub fn packed(calls: &[Call]) -> Vec<u8> {
    calls.iter().flat_map(|call| pack(call)).chain(pack(&["ECHO", "end"])).collect()
}

impl Contender {
    /// The time of a call as a client sees it, in microseconds, in pipelines of 20. Building requests and parsing
    /// replies is not measured.
    pub fn over_socket(&mut self, calls: &[Call]) -> f64 {
        let pipelines: Vec<Vec<u8>> = calls.chunks(20).map(packed).collect();
        let start = Instant::now();
        pipelines.iter().for_each(|pipeline| self.client.exchange(pipeline));
        start.elapsed().as_secs_f64() * 1e6 / calls.len() as f64
    }

    /// Adds `count` items to a filter, counter or HyperLogLog, one list at a time. The server's replies are switched
    /// off.
    pub fn fill(&mut self, command: &str, key: &str, items: &mut Items, count: usize) {
        self.client.expect("CONFIG RESETSTAT", "+OK");
        self.client.send(&["CLIENT", "REPLY", "OFF"]);
        let mut left = count;
        while left > 0 {
            let list: Vec<Item> = items.take(left.min(LIST)).collect();
            left -= list.len();
            let head = [command.as_bytes(), key.as_bytes()];
            self.client.send(&head.into_iter().chain(list.iter().map(|item| &item[..])).collect::<Vec<_>>());
        }
        self.client.expect("CLIENT REPLY ON", "+OK");
        self.time_of(command);
    }

    /// Returns the server's mean time of a call, in microseconds. All calls are of the same command. The calls in
    /// `warm` run first, without being measured, because the caches hold the other server's data.
    pub fn time(&mut self, warm: &[Call], calls: &[Call]) -> f64 {
        self.client.exchange(&packed(warm));
        self.client.expect("CONFIG RESETSTAT", "+OK");
        self.client.exchange(&packed(calls));
        self.time_of(&String::from_utf8_lossy(&calls[0][0]))
    }

    /// The server's mean time of a call of `command` since the last `CONFIG RESETSTAT`, in microseconds.
    ///
    /// The server counts whole microseconds. Calls start at random fractions of one, so the mean over many calls is
    /// right.
    fn time_of(&mut self, command: &str) -> f64 {
        let stats = self.client.text("INFO commandstats");
        // INFO has the command's name as the module registered it.
        let of_command = |line: &&str| {
            let name = line.strip_prefix("cmdstat_").and_then(|line| line.split(':').next());
            name.is_some_and(|name| name.eq_ignore_ascii_case(command))
        };
        let line = stats.lines().find(of_command).unwrap_or_else(|| panic!("the server did not run {command}"));
        let field = |name: &str| -> f64 {
            let value = line.split([',', ':']).find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
        };
        assert_eq!(field("failed_calls") + field("rejected_calls"), 0.0, "{line}");
        field("usec") / field("calls")
    }

    /// A field of `BF.INFO`.
    pub fn info(&mut self, key: &str, label: &str) -> f64 {
        number(&field(&self.client.cmd(&format!("BF.INFO {key}")), label))
    }

    /// Bytes of memory that are resident in the process.
    pub fn resident_bytes(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("the process's status");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        kilobytes.and_then(|text| text.trim().parse::<f64>().ok()).expect("its resident size") * 1024.0
    }
}
