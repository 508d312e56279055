//! Follows the documents: installs the module, rewrites the configuration, removes the module. The server has to
//! start after each of these steps. Also runs the scripts of packages and images.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rollcall_testkit::{Client, Server, Setup, module_path, show, text, wait_until};

use crate::neighbour::neighbour;

/// The paths that documents and scripts use for modules and for the server's configuration.
const MODULES: &str = "/usr/lib/redis/modules";
const CONFIGURATION: &str = "/etc/redis/redis.conf";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file of the repository")
}

/// The blocks of shell commands below a heading of a document, up to the next heading.
fn commands(document: &str, heading: &str) -> Vec<String> {
    let text = read(document);
    let mut lines = text.lines().skip_while(|line| *line != heading).skip(1).peekable();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
        if line == "```sh" {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect());
        }
    }
    assert!(!blocks.is_empty(), "{document} has no commands below {heading}");
    blocks
}

fn shell(script: &str, folder: &Path) -> Output {
    Command::new("sh").args(["-e", "-c", script]).current_dir(folder).output().expect("a shell")
}

/// Runs commands of a document, and returns their output. `systemctl stop` stops this server, and the test starts it
/// again.
#[track_caller]
fn obey(server: &Server, commands: &str) -> String {
    let surroundings = format!(
        "alias redis-cli='redis-cli -p {}'
        systemctl() {{ [ $1 = start ] || redis-cli SHUTDOWN NOSAVE; }}
        sleep() {{ command sleep 0.05; }}
        dpkg() {{ :; }}\n",
        server.port()
    );
    let output = shell(&(surroundings + commands), server.dir());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && output.stderr.is_empty(), "{commands}\n{printed}\n{output:?}");
    printed
}

/// Starts a server that somebody set up, and installs the module as a document says.
fn installed(document: &str, heading: &str, setup: Setup) -> Server {
    let mut server = setup.without_module().start();
    let install = commands(document, heading).remove(0);
    // The module is not copied, but loaded from where it was built.
    let is_copy = |line: &&str| line.starts_with("install ");
    let install: String = install.lines().filter(|line| !is_copy(line)).map(|line| format!("{line}\n")).collect();
    let module = module_path().display().to_string();
    obey(
        &server,
        &install.replace(&format!("{MODULES}/librollcall.so"), &module).replace(CONFIGURATION, "server.conf"),
    );
    server.wait_ended();
    server.start_again();
    assert_loaded(&server);
    server
}

fn debian(setup: Setup) -> Server {
    installed("docs/operations.md", "### Debian and Ubuntu", setup)
}

/// How often a server has loaded the module of this name.
fn times_loaded(client: &mut Client, name: &str) -> usize {
    let modules = client.list("MODULE LIST");
    modules.iter().filter(|module| show(module).contains(&format!("\"{name}\""))).count()
}

/// The module is loaded, and answers.
#[track_caller]
fn assert_loaded(server: &Server) {
    let mut client = server.client();
    assert_eq!(times_loaded(&mut client, "rollcall"), 1, "{}", server.config_file());
    client.expect("LC.COUNT missing", "0");
}

fn num_load_lines(server: &Server) -> usize {
    server.config_file().lines().filter(|line| line.starts_with("loadmodule ") && line.contains("rollcall")).count()
}

/// Sets options, rewrites the configuration and restarts, twice.
#[track_caller]
fn assert_survives_rewrites(server: &mut Server) {
    for (rate, size) in [("0.02", "1mb"), ("0.03", "2mb")] {
        server.set_parameter("bf-error-rate", rate);
        server.set_parameter("max-key-bytes", size);
        server.client().expect("CONFIG REWRITE", "+OK");
        assert_eq!(num_load_lines(server), 1, "{}", server.config_file());
        server.restart();
        assert_loaded(server);
        assert_eq!(server.config(&server.parameter("bf-error-rate")).as_deref(), Some(rate));
        let bytes = format!("{}", size[..1].parse::<u32>().expect("a digit") << 20);
        assert_eq!(server.config("rollcall.max-key-bytes"), Some(bytes));
    }
}

/// A regression test: if an included file loaded the module, `CONFIG REWRITE` wrote a second line, and the server did
/// not start again.
#[test]
fn every_documented_installation_survives_rewrites() {
    assert_survives_rewrites(&mut debian(Setup::default()));
    let archive = "# Installing Rollcall";
    assert_survives_rewrites(&mut installed("packaging/INSTALL.md", archive, Setup::default()));
    // The configuration of `make run`, with its commented options enabled.
    let make_run = read("redis.conf").replace("dir target/run", "dir .").replace("# rollcall.lc-", "rollcall.lc-");
    let make_run = make_run.replace("../release/librollcall.so", &module_path().display().to_string());
    assert_survives_rewrites(&mut Setup::default().without_module().line(&make_run).start());
}

/// A failover rewrites the configuration of both servers.
#[test]
fn servers_start_again_after_a_failover_by_sentinel() {
    let [mut one, mut other] = [(); 2].map(|()| debian(Setup::default()));
    other.replicate(&one);
    one.client().expect("LC.ADD visitors ann ben", "2");
    other.wait_synced(&one);
    let (sentinel, mut asked) = Setup::default()
        .without_module()
        .for_old_server()
        .line(&format!("sentinel monitor main 127.0.0.1 {} 1", one.port()))
        .script("exec \"$@\" --sentinel")
        .start()
        .with_client();
    asked.expect("SENTINEL DEBUG info-period 100 ping-period 100 publish-period 100", "+OK");
    wait_until("the failover", || match show(&asked.cmd("SENTINEL FAILOVER main")).as_str() {
        "+OK" => Some(()),
        reply => {
            assert!(reply.starts_with("-NOGOODSLAVE"), "{reply}");
            None
        }
    });
    // The test reads the files, because Sentinel closes all connections when it changes a role.
    wait_until("both files to be rewritten", || {
        let is_rewritten = |server: &&Server| server.config_file().contains("# Generated by CONFIG REWRITE");
        let is_replica = [&one, &other].map(|server| server.config_file().contains("\nreplicaof "));
        ([&one, &other].iter().all(is_rewritten) && is_replica == [true, false]).then_some(())
    });
    drop(sentinel);
    for server in [&one, &other] {
        wait_until("the last connections to be closed", || server.client().try_call(&["PING"]));
    }
    for server in [&mut one, &mut other] {
        assert_eq!(num_load_lines(server), 1, "{}", server.config_file());
        wait_linked(server);
        server.save();
        server.restart();
        assert_loaded(server);
        wait_linked(server);
        server.client().expect("LC.COUNT visitors", "2");
    }
}

/// Waits until a replica has its primary's data. On a primary it does nothing.
fn wait_linked(server: &Server) {
    let mut client = server.client();
    wait_until("the replica's link", || ["", "up"].contains(&&*client.info("master_link_status")).then_some(()));
}

/// The files and settings of a server that the removal has to clean up.
struct Kept {
    appendonly: bool,
    acl_file: bool,
}

/// A regression test: servers did not start after the documented removal. Their append-only file had LC.* commands,
/// their users the permission `+bf.add`, and their configuration options of the module.
#[test]
fn servers_start_without_the_module_after_the_documented_removal() {
    for kept in [
        Kept { appendonly: true, acl_file: true },
        Kept { appendonly: true, acl_file: false },
        Kept { appendonly: false, acl_file: false },
    ] {
        remove(&kept);
    }
}

fn remove(kept: &Kept) {
    let mut setup = Setup::default().line("include more.conf").file("more.conf", b"timeout 0\n");
    if kept.appendonly {
        setup = setup.line("appendonly yes");
    }
    if kept.acl_file {
        setup = setup.line("aclfile users.acl").file("users.acl", b"");
    }
    let mut server = debian(setup);
    fs::write(server.dir().join("more.conf"), "timeout 0\nROLLCALL.lc-exact-limit 100\n").expect("the file is written");
    server.restart();
    let mut client = server.client();
    let has_categories = server.version().has_acl_categories();
    let rules = if has_categories { "+@bloom -@filters +@counting" } else { "+rf.add" };
    client.expect(&format!("ACL SETUSER app on >some+bf.add ~a-lc.x* -@all +get +bf.add {rules} +set"), "+OK");
    client.call(&["ACL", "SETUSER", "app", "(~k* +lc.count +get -bf.madd)"]);
    server.set_parameter("bf-error-rate", "0.02");
    server.set_parameter("max-key-bytes", "512mb");
    client.expect("CONFIG REWRITE", "+OK");
    if kept.acl_file {
        client.expect("ACL SAVE", "+OK");
    }
    fill(&mut client);
    // Data that was saved before the removal has keys of the module.
    server.save();
    if kept.appendonly {
        server.rewrite_aof();
        client.expect("LC.ADD late a", "1");
    }
    let size = client.int("DBSIZE");

    let blocks = commands("docs/operations.md", "## Removing");
    let [delete, files, configuration, _dpkg] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    let left = obey(&server, delete);
    assert_eq!(left.replace('\r', ""), "rollcall_filters:0\nrollcall_filters_not_served:0\nrollcall_counters:0\n");
    assert!(client.int("DBSIZE") < size);
    let is_run = |line: &&str| kept.appendonly || !line.contains("BGREWRITEAOF");
    let files: String = files.lines().filter(is_run).map(|line| format!("{line}\n")).collect();
    let statuses = obey(&server, &files);
    assert!(statuses.replace('\r', "").ends_with("rdb_last_bgsave_status:ok\naof_last_bgrewrite_status:ok\n"));
    let acl_file = if kept.acl_file { "users.acl" } else { "" };
    obey(&server, &configuration.replace(CONFIGURATION, &format!("server.conf more.conf {acl_file}")));
    server.wait_ended();
    for _ in 0..2 {
        server.start_again();
        let mut client = server.client();
        assert_eq!(times_loaded(&mut client, "rollcall"), 0);
        client.expect_each("GET kept => \"a\"; DBSIZE => 1; SELECT 3 => +OK; GET kept => \"b\"; DBSIZE => 1");
        let user = client.list("ACL LIST").iter().map(text).find(|user| user.starts_with("user app ")).expect("a user");
        for part in [" ~a-lc.x* ", "+get", "+set", "~k*"] {
            assert!(user.contains(part), "{user}");
        }
        client.expect("AUTH app some+bf.add", "+OK");
        server.client().expect("CONFIG REWRITE", "+OK");
        server.shutdown("SHUTDOWN NOSAVE");
    }
}

/// Adds module keys of every kind to two databases, and one of the server's own keys to each.
fn fill(client: &mut Client) {
    for (database, value) in [("0", "a"), ("3", "b")] {
        client.expect(&format!("SELECT {database}"), "+OK");
        client.expect(&format!("SET kept {value}"), "+OK");
        for command in [
            "BF.RESERVE lines 0.01 100",
            "BF.RESERVE classic 0.01 100 LAYOUT classic",
            "BF.RESERVE windowed 0.01 100 WINDOW 3600",
            "BF.RESERVE expires 0.01 100",
        ] {
            client.expect(command, "+OK");
        }
        client.expect("LC.INSERT counter EXACT 0 ITEMS a", "1");
        client.expect("LC.INSERT lasting WINDOW 3600 ITEMS a", "1");
        client.expect("PEXPIRE expires 3600000", "1");
        client.expect("COPY counter {a}*?[\"quoted\"]", "1");
        client.call(&["LC.ADD", "two\nlines \u{1}\u{e9}", "member"]);
        // Enough keys for several steps of SCAN.
        let many: Vec<_> = (0..2500).map(|i| vec!["BF.ADD".to_owned(), format!("many:{i}"), "a".to_owned()]).collect();
        client.pipeline(&many);
    }
    client.expect("SELECT 0", "+OK");
}

/// Starts servers by the entrypoint of the images, with a substitute for the entrypoint of the server's own image.
struct Image {
    folder: tempfile::TempDir,
}

impl Image {
    fn new() -> Image {
        let image = Image { folder: tempfile::tempdir().expect("a temporary directory") };
        let modules = image.path("modules");
        fs::create_dir(&modules).expect("a folder");
        for (name, module) in [("librollcall.so", module_path()), ("neighbour.so", neighbour().to_owned())] {
            std::os::unix::fs::symlink(module, Path::new(&modules).join(name)).expect("a link");
        }
        let theirs = "#!/bin/sh\ncase \"$1\" in -* | *.conf) set -- \"$SERVER\" \"$@\" ;; esac\nexec \"$@\"\n";
        let ours = read("packaging/images/entrypoint.sh").replace(MODULES, &modules);
        for (name, script) in [("docker-entrypoint.sh", theirs), ("rollcall-entrypoint.sh", &ours)] {
            let path = image.path(name);
            fs::write(&path, script).expect("the script is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the script can be run");
        }
        image
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The setup of a server whose container has these arguments. `$@` stands for the configuration file and the
    /// port.
    fn setup(&self, arguments: &str) -> Setup {
        let folder = self.folder.path().display();
        let script = format!(
            "export SERVER=\"$1\" PATH={folder}:\"$PATH\"; shift
            exec rollcall-entrypoint.sh {arguments}"
        );
        Setup::default().without_module().script(&script)
    }

    /// The line that loads the module.
    fn line(&self) -> String {
        format!("loadmodule {}", self.path("modules/librollcall.so"))
    }
}

/// A regression test: the entrypoint loaded the module in addition to the line that `CONFIG REWRITE` had written, so
/// the container ended.
#[test]
fn containers_start_again_after_a_rewrite() {
    let image = Image::new();
    let all = "\"$@\" --rollcall.lc-exact-limit 100";
    for setup in [
        image.setup(all),
        image.setup(all).line(&format!("{} bf-initial-size 7", image.line())),
        image.setup(all).line(&format!("  LoadModule \"{}\"", image.path("modules/librollcall.so"))),
    ] {
        let mut server = setup.start();
        assert_loaded(&server);
        assert_survives_rewrites(&mut server);
        assert_eq!(times_loaded(&mut server.client(), "idle"), 1);
        server.client().expect("CONFIG GET rollcall.lc-exact-limit", "[\"rollcall.lc-exact-limit\", \"100\"]");
    }
}

#[test]
fn containers_load_the_module_once_whatever_the_configuration_includes() {
    let image = Image::new();
    let line = image.line();
    for (name, include, files) in [
        ("a file", "include one.conf", vec![("one.conf", line.as_str())]),
        ("files by a pattern", "INCLUDE ./on*.conf", vec![("one.conf", line.as_str())]),
        ("a name with spaces", "include \"one more.conf\"", vec![("one more.conf", line.as_str())]),
        ("what is included includes", "include one.conf", vec![("one.conf", "include two.conf"), ("two.conf", &line)]),
        ("a file without it", "include one.conf", vec![("one.conf", "timeout 0")]),
        ("a comment", "include one.conf", vec![("one.conf", "# loadmodule librollcall.so")]),
        ("nothing", "timeout 0", vec![]),
    ] {
        let add = |setup: Setup, (name, text): &(&str, &str)| setup.file(name, format!("{text}\n").as_bytes());
        let setup = files.iter().fold(image.setup("\"$@\"").line(include), add);
        assert_loaded(&setup.try_start().unwrap_or_else(|log| panic!("{name}: {log}")));
    }
    // The file does not load the module, but the arguments do.
    assert_loaded(&image.setup(&format!("\"$@\" --{line}")).start());
}

#[test]
fn containers_without_a_configuration_start_again() {
    let image = Image::new();
    let mut server = image.setup("--logfile server.log \"$2\" \"$3\"").start();
    assert_loaded(&server);
    server.client().expect("CONFIG REWRITE", "-*without a config file*");
    server.restart();
    assert_loaded(&server);
}

/// A regression test: the removal script looked only for the line `include ... rollcall.conf` in one file.
#[test]
fn removing_the_package_names_every_file_that_still_needs_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let prerm = read("packaging/debian/prerm").replace("/etc/", "./");
    for (name, text) in [
        ("redis/redis.conf", "timeout 0\ninclude ./more/*.conf\ninclude \"./one more.conf\"\ninclude ./missing.conf\n"),
        ("redis/sentinel.conf", "# loadmodule /usr/lib/redis/modules/librollcall.so\n"),
        (
            "redis/redis-two.conf",
            "include ./redis/redis-two.conf\n LOADMODULE \"/usr/lib/redis/modules/librollcall.so\"\n",
        ),
        ("valkey/valkey.conf", "rollcall.lc-exact-limit 5"),
        ("more/a.conf", "loadmodule /usr/lib/redis/modules/librollcall.so"),
        ("more/b.conf", "# rollcall.lc-exact-limit 5\nloadmodule /usr/lib/redis/modules/other.so\n"),
        ("one more.conf", "loadmodule /usr/lib/redis/modules/librollcall.so commands lc\n"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("the file is written");
    }
    let run = |step: &str| {
        let output = shell(&format!("set -- {step}\n{prerm}"), folder.path());
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let warning = run("remove");
    let name = |line: &str| line.split("rollcall: ").nth(1)?.split(" still names").next().map(str::to_owned);
    let named: Vec<_> = warning.lines().filter_map(name).collect();
    assert_eq!(
        named,
        ["./more/a.conf", "./one more.conf", "./redis/redis-two.conf", "./valkey/valkey.conf"],
        "{warning}"
    );
    assert_eq!(run("upgrade"), "");
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let output = shell(&format!("set -- remove\n{prerm}"), nothing.path());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
