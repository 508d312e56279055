//! Servers for tests: started on a free port in their own directories, killed on drop.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Client, deadline, excerpt, patience, text, wait_until, words};
use crate::version::Version;

/// The setup of a server.
#[derive(Clone, Default)]
pub struct Setup {
    module_args: String,
    lines_before: Vec<String>,
    lines_after: Vec<String>,
    without_module: bool,
    host: Option<(PathBuf, String)>,
    module: Option<PathBuf>,
    binary: Option<PathBuf>,
    is_old: bool,
    files: Vec<(String, Vec<u8>)>,
    environment: Vec<(String, OsString)>,
    script: Option<String>,
    outlives_signals: bool,
}

impl Setup {
    /// Load-time arguments of the module.
    pub fn args(mut self, args: &str) -> Setup {
        self.module_args = args.to_owned();
        self
    }

    /// Adds load-time arguments.
    pub fn more_args(mut self, args: &str) -> Setup {
        self.module_args = format!("{} {args}", self.module_args);
        self
    }

    /// Adds a line to the configuration file, after the one that loads the module.
    pub fn line(mut self, line: &str) -> Setup {
        self.lines_after.push(line.to_owned());
        self
    }

    /// Loads another module before the module under test.
    pub fn module_before(mut self, path: &Path) -> Setup {
        self.lines_before.push(format!("loadmodule {}", path.display()));
        self
    }

    /// Leaves out the modules that would be loaded before the module under test.
    pub fn without_modules_before(mut self) -> Setup {
        self.lines_before.clear();
        self
    }

    /// Leaves out the module under test.
    pub fn without_module(mut self) -> Setup {
        self.without_module = true;
        self
    }

    /// Loads the module through a host module, which sits between it and the server and gets these options.
    pub fn hosted_by(mut self, host: &Path, options: &str) -> Setup {
        self.host = Some((host.to_owned(), options.to_owned()));
        self
    }

    /// Loads this module in place of the one under test.
    pub fn module(mut self, path: &Path) -> Setup {
        self.module = Some(path.to_owned());
        self
    }

    /// Uses another server than the one under test.
    pub fn binary(mut self, path: &Path) -> Setup {
        self.binary = Some(path.to_owned());
        self
    }

    /// Adds a file to the server's directory before the start.
    pub fn file(mut self, name: &str, bytes: &[u8]) -> Setup {
        self.files.push((name.to_owned(), bytes.to_owned()));
        self
    }

    /// An environment variable of the server's process.
    pub fn environment(mut self, name: &str, value: impl Into<OsString>) -> Setup {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Starts the server by a shell script. The script ends with `exec "$@"`, so that the process id stays the same.
    pub fn script(mut self, script: &str) -> Setup {
        self.script = Some(script.to_owned());
        self
    }

    /// Makes a server that ignores Ctrl-C, but ends when this process ends for any reason.
    pub fn outliving_signals(mut self) -> Setup {
        self.outlives_signals = true;
        self.script("exec setpriv --pdeathsig KILL \"$@\"")
    }

    /// Leaves out the configuration lines that servers before 7.0 do not know.
    pub fn for_old_server(mut self) -> Setup {
        self.is_old = true;
        self
    }

    /// Starts the server and waits until it answers.
    #[track_caller]
    pub fn start(self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(log) => panic!("the server did not start; its log:\n{}", excerpt(&log)),
        }
    }

    /// Starts the server like [`Setup::start`]. If the server ends instead of answering, the error is its log.
    pub fn try_start(self) -> Result<Server, String> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut server = Server { setup: self, dir, child: None, port: 0 };
        server.write_config();
        for (name, bytes) in &server.setup.files {
            let path = server.dir().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the file's folder");
            fs::write(path, bytes).expect("the file is written");
        }
        server.launch()?;
        Ok(server)
    }
}

/// A running server.
pub struct Server {
    setup: Setup,
    dir: TempDir,
    child: Option<Child>,
    port: u16,
}

impl Server {
    /// Starts a server with the module and default options.
    #[track_caller]
    pub fn start() -> Server {
        Setup::default().start()
    }

    /// Starts a server with load-time arguments of the module.
    #[track_caller]
    pub fn with_args(args: &str) -> Server {
        Setup::default().args(args).start()
    }

    /// The server and a first connection to it.
    #[track_caller]
    pub fn with_client(self) -> (Server, Client) {
        let client = self.client();
        (self, client)
    }

    /// A new connection, in RESP2.
    #[track_caller]
    pub fn client(&self) -> Client {
        Client::connect(self.port, deadline(), log_file(self.dir())).expect("the server takes a connection")
    }

    /// A new connection of the new user `name`, who has these ACL rules.
    #[track_caller]
    pub fn client_as(&self, name: &str, rules: &str) -> Client {
        self.client().expect(&format!("ACL SETUSER {name} on nopass {rules}"), "+OK");
        let mut client = self.client();
        client.expect(&format!("AUTH {name} any"), "+OK");
        client
    }

    /// A new connection, in RESP3.
    #[track_caller]
    pub fn client3(&self) -> Client {
        self.client().resp3()
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// The server's working directory, with its data, log and configuration.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The whole log of the server, including the logs before restarts.
    pub fn log(&self) -> String {
        read_log(self.dir())
    }

    /// The lines in the log that the module under test wrote.
    pub fn module_log(&self) -> Vec<String> {
        // If no command or load is running, the log line begins with `<module>` instead of the module's name.
        let ours = |line: &&str| line.contains("<rollcall>") || line.contains("<module>");
        self.log().lines().filter(ours).map(str::to_owned).collect()
    }

    /// The present text of the configuration file.
    pub fn config_file(&self) -> String {
        fs::read_to_string(self.dir().join("server.conf")).expect("the configuration file")
    }

    /// Panics unless the server still answers in the process that was started.
    #[track_caller]
    pub fn assert_up(&mut self) {
        let child = self.child.as_mut().expect("a running server");
        if let Some(status) = child.try_wait().expect("the child's status") {
            panic!("the server ended ({status}); its log:\n{}", excerpt(&read_log(self.dir.path())));
        }
        assert_eq!(self.client().text("PING"), "PONG");
    }

    /// Shuts the server down without saving an RDB file, and starts it in the same directory. An AOF stays complete.
    #[track_caller]
    pub fn restart(&mut self) {
        self.shutdown("SHUTDOWN NOSAVE");
        self.start_again();
    }

    /// Restarts the server like [`Server::restart`], but with other load-time arguments.
    #[track_caller]
    pub fn restart_with_args(&mut self, args: &str) {
        self.restart_as(|setup| setup.args(args));
    }

    /// Restarts the server like [`Server::restart`], with another setup and a new configuration file.
    #[track_caller]
    pub fn restart_as(&mut self, change: impl FnOnce(Setup) -> Setup) {
        self.shutdown("SHUTDOWN NOSAVE");
        self.setup = change(std::mem::take(&mut self.setup));
        self.write_config();
        self.start_again();
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("a running server");
        child.kill().expect("the server is killed");
        child.wait().expect("the child's status");
    }

    /// Starts a server that has ended, in the same directory.
    #[track_caller]
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "the server is running");
        if let Err(log) = self.launch() {
            panic!("the server did not start again; its log:\n{}", excerpt(&log));
        }
    }

    /// Shuts the server down with this command, and waits until the process is gone.
    #[track_caller]
    pub fn shutdown(&mut self, command: &str) {
        let mut client = self.client();
        client.send(&command.split(' ').collect::<Vec<_>>());
        let child = self.child.as_mut().expect("a running server");
        let status = wait_until("the server to end", || child.try_wait().expect("the child's status"));
        self.child = None;
        assert!(status.success(), "{command} ended with {status}; log:\n{}", excerpt(&self.log()));
    }

    /// Waits until the server has ended by itself, and returns its log.
    #[track_caller]
    pub fn wait_ended(&mut self) -> String {
        let child = self.child.as_mut().expect("a running server");
        wait_until("the server to end", || child.try_wait().expect("the child's status"));
        self.child = None;
        self.log()
    }

    /// Saves the data set to the RDB file.
    #[track_caller]
    pub fn save(&self) {
        let mut client = self.client();
        // A background save may still run, for example for a full synchronisation.
        wait_until("background saves to end", || (client.info_number("rdb_bgsave_in_progress") == 0).then_some(()));
        client.expect("SAVE", "+OK");
    }

    /// Rewrites the AOF and waits until that is done.
    #[track_caller]
    pub fn rewrite_aof(&self) {
        let started = self.client().text("BGREWRITEAOF");
        assert!(started.starts_with("Background append only file rewriting"), "{started}");
        self.wait_for_aof();
        assert_eq!(self.client().info("aof_last_bgrewrite_status"), "ok", "log:\n{}", excerpt(&self.log()));
    }

    /// Waits until no rewrite of the AOF runs or is scheduled, as after `appendonly yes` or the synchronisation of a
    /// replica.
    pub fn wait_for_aof(&self) {
        let mut client = self.client();
        wait_until("the AOF to be rewritten", || {
            // The order of the questions matters: a rewrite that begins between them is then seen in progress.
            let idle = ["aof_rewrite_scheduled", "aof_rewrite_in_progress"].map(|field| client.info_number(field));
            (idle == [0, 0]).then_some(())
        });
    }

    /// The content of the AOF's files whose names end so, such as `.base.aof`, one after the other.
    pub fn aof(&self, end: &str) -> Vec<u8> {
        let files = fs::read_dir(self.dir().join("appendonlydir")).expect("the AOF's directory");
        let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        paths.retain(|path| path.to_string_lossy().ends_with(end));
        paths.sort();
        paths.iter().flat_map(|path| fs::read(path).expect("the AOF")).collect()
    }

    /// Makes this server a replica and waits until the link is up and everything has been received.
    #[track_caller]
    pub fn replicate(&self, primary: &Server) {
        self.client().expect(&format!("REPLICAOF 127.0.0.1 {}", primary.port), "+OK");
        let mut client = self.client();
        wait_until("the replica's link", || (client.info("master_link_status") == "up").then_some(()));
        self.wait_synced(primary);
    }

    /// Waits until this replica has processed everything that the primary sent.
    #[track_caller]
    pub fn wait_synced(&self, primary: &Server) {
        let sent = primary.client().info_number("master_repl_offset");
        let mut client = self.client();
        wait_until("the replica to catch up", || {
            (client.info("slave_repl_offset").parse::<i64>().ok()? >= sent).then_some(())
        });
    }

    /// The server's kind and version.
    pub fn version(&self) -> Version {
        let mut client = self.client();
        let valkey = client.info("valkey_version");
        let is_valkey = !valkey.is_empty();
        let full = if is_valkey { valkey } else { client.info("redis_version") };
        let mut parts = full.split('.').map(|part| part.parse().unwrap_or(0));
        Version { is_valkey, major: parts.next().unwrap_or(0), minor: parts.next().unwrap_or(0) }
    }

    /// The value of a configuration parameter; `None` if the server does not have it.
    pub fn config(&self, name: &str) -> Option<String> {
        let reply = self.client().call(&["CONFIG", "GET", name]);
        let redis::Value::Array(items) = reply else { panic!("CONFIG GET gave {reply:?}") };
        items.get(1).map(text)
    }

    /// The full name of one of the module's options on this server, with or without the module's prefix.
    pub fn parameter(&self, name: &str) -> String {
        let unprefixed = ["bf-error-rate", "bf-initial-size", "bf-expansion-factor"];
        if unprefixed.contains(&name) && self.version().has_unprefixed_configs() {
            name.to_owned()
        } else {
            format!("rollcall.{name}")
        }
    }

    /// Sets one of the module's options.
    #[track_caller]
    pub fn set_parameter(&self, name: &str, value: &str) {
        let reply = self.client().call(&["CONFIG", "SET", &self.parameter(name), value]);
        assert_eq!(reply, redis::Value::Okay, "CONFIG SET {name} {value}");
    }

    /// If the test fails, copies the server's log to the folder `ROLLCALL_LOGS`, if that is set.
    fn keep_log_of_failure(&self) {
        let Some(folder) = std::env::var_os("ROLLCALL_LOGS").map(PathBuf::from) else { return };
        if !std::thread::panicking() {
            return;
        }
        let kept = folder.join(format!("{}-{}.log", std::process::id(), self.port));
        match fs::create_dir_all(&folder).and_then(|()| fs::copy(log_file(self.dir()), &kept)) {
            Ok(_) => eprintln!("the log of the server on port {} is kept in {}", self.port, kept.display()),
            Err(error) => eprintln!("the log of the server on port {} is lost: {error}", self.port),
        }
    }

    fn write_config(&self) {
        let mut lines: Vec<String> = [
            "bind 127.0.0.1",
            "logfile server.log",
            "save \"\"",
            "enable-debug-command yes",
            "enable-module-command yes",
            // Synchronisation starts at once, and no ping changes the replication offset during a test.
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 3600",
            // The slow log would keep arguments of commands, and so change the memory in use.
            "slowlog-log-slower-than -1",
        ]
        .map(str::to_owned)
        .into();
        if self.setup.is_old {
            lines.retain(|line| !line.starts_with("enable-"));
        }
        lines.extend(self.setup.lines_before.iter().cloned());
        if !self.setup.without_module {
            let module = self.setup.module.clone().unwrap_or_else(module_path);
            let of_all = match self.setup.module {
                None => std::env::var("ROLLCALL_ARGS").unwrap_or_default(),
                Some(_) => String::new(),
            };
            // An argument may not be given twice, so a test's own ones replace those of all servers.
            let (of_all, own) = (words(&of_all), words(&self.setup.module_args));
            let is_own = |name: &str| own.iter().step_by(2).any(|own| *own == name);
            let of_all = of_all.chunks(2).filter(|argument| !is_own(argument[0])).flatten();
            let args = of_all.chain(&own).copied().collect::<Vec<_>>().join(" ");
            lines.push(match &self.setup.host {
                None => format!("loadmodule {} {args}", module.display()),
                Some((host, options)) => {
                    format!("loadmodule {} host {} {options} -- {args}", host.display(), module.display())
                }
            });
        }
        lines.extend(self.setup.lines_after.iter().cloned());
        fs::write(self.dir().join("server.conf"), lines.join("\n") + "\n").expect("the configuration is written");
    }

    /// Starts the process on a port that is free now. If another program takes it first, another port is tried.
    fn launch(&mut self) -> Result<(), String> {
        for _ in 0..20 {
            self.port = free_port();
            let binary = self.setup.binary.clone().unwrap_or_else(server_binary);
            let mut command = match &self.setup.script {
                None => Command::new(&binary),
                Some(script) => {
                    let mut shell = Command::new("sh");
                    shell.args(["-c", script, "sh"]).arg(&binary);
                    shell
                }
            };
            if self.setup.outlives_signals {
                command.process_group(0);
            }
            let child = command
                .args(["server.conf", "--port", &self.port.to_string()])
                .current_dir(self.dir.path())
                .envs(self.setup.environment.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap_or_else(|error| panic!("cannot start {}: {error}", binary.display()));
            let child = self.child.insert(child);
            let pid = child.id().to_string();
            let end = Instant::now() + deadline();
            loop {
                if let Some(status) = child.try_wait().expect("the child's status") {
                    let log = read_log(self.dir.path());
                    if log.lines().rev().take(5).any(|line| line.contains("in use")) {
                        break;
                    }
                    return Err(format!("{log}\n(ended with {status})\n"));
                }
                // If an RDB file ends too soon, Redis 7.0 runs its file checker, which may never end. Only lines of
                // this process count, because a replica continues after such an error.
                let log = read_log(self.dir.path());
                let is_broken =
                    |line: &str| line.starts_with(&format!("{pid}:")) && line.contains("Internal error in RDB");
                if log.lines().rev().take(20).any(is_broken) {
                    return Err(log);
                }
                // The answer must come from this process, because another server may have taken the port. A server
                // that failed to load accepts connections but never answers.
                if Client::connect(self.port, Duration::from_millis(200) * patience(), PathBuf::new())
                    .is_some_and(|mut client| is_ready(&mut client, &pid))
                {
                    return Ok(());
                }
                assert!(
                    Instant::now() < end,
                    "the server does not answer; log:\n{}",
                    excerpt(&read_log(self.dir.path()))
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("no free port found");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.keep_log_of_failure();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            // libfaketime's shared memory, which would remain after the server has ended.
            for name in ["faketime_shm_", "sem.faketime_sem_"] {
                let _ = fs::remove_file(format!("/dev/shm/{name}{}", child.id()));
            }
        }
    }
}

fn is_ready(client: &mut Client, pid: &str) -> bool {
    let Some(reply) = client.try_call(&["INFO", "server"]) else { return false };
    if crate::client::error_text(&reply).is_some() {
        return false;
    }
    let ours = text(&reply).lines().any(|line| line.trim() == format!("process_id:{pid}"));
    // A server that is loading data answers INFO, but not PING.
    ours && client.try_call(&["PING"]).is_some_and(|pong| crate::client::error_text(&pong).is_none())
}

fn log_file(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

fn read_log(dir: &Path) -> String {
    fs::read(log_file(dir)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn free_port() -> u16 {
    // The ports are below the range of outgoing connections, so only listeners compete for them. A replication link or
    // a client of a parallel test could otherwise take a port in between.
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 10_000) as u16;
    loop {
        let port = 20_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn server_binary() -> PathBuf {
    std::env::var_os("ROLLCALL_SERVER").map_or_else(|| "redis-server".into(), PathBuf::from)
}

/// The path of the module under test.
pub fn module_path() -> PathBuf {
    let path = std::env::var_os("ROLLCALL_MODULE").map_or_else(default_module_path, PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| panic!("no module at {}: {error}; build it first", path.display()))
}

fn default_module_path() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    target.join("release").join("librollcall.so")
}

/// Whether `ROLLCALL_THOROUGH` asks for all cases of tests that otherwise sample them, as `make hostile` does.
pub fn is_thorough() -> bool {
    std::env::var_os("ROLLCALL_THOROUGH").is_some()
}

/// The file that an environment variable names. If the variable is not set, prints that the test is skipped.
pub fn optional_file(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        println!("left out: {variable} is not set");
    }
    path
}

/// Runs a session of commands over RESP2, then over RESP3, each on an empty server. A row is a command, its reply in
/// RESP2 and its reply in RESP3, in the notation of [`show`](crate::client::show). If a command begins with `?`, the
/// session runs once for filters, where `?` is BF, and once for counters.
#[track_caller]
pub fn session(rows: &[(&str, &str, &str)]) {
    let server = Server::start();
    let families: &[&str] = if rows.iter().any(|row| row.0.starts_with('?')) { &["BF", "LC"] } else { &[""] };
    for family in families {
        for (is_resp3, mut client) in [(false, server.client()), (true, server.client3())] {
            client.expect("FLUSHALL", "+OK");
            for (command, reply, reply3) in rows {
                client.expect(&command.replace("?.", &format!("{family}.")), if is_resp3 { reply3 } else { reply });
            }
        }
    }
}
