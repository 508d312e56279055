//! Kills primaries under load. The replica that takes over must have every write that `WAIT 1` acknowledged.

use crate::check::Tally;
use crate::line::{Line, Single};
use crate::run::{Run, setting};
use crate::writer::{Load, Writer, check_all, finish};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{OTHER_DEFAULTS, Server, Setup};

const WRITERS: u64 = 4;
const LOAD: Load = Load { commands: 12, items: 100, share: 4, expires: true };

fn new_server(random: &mut Random) -> Server {
    let diskless = random.of(&["yes", "no"]);
    let load = random.of(&["disabled", "on-empty-db", "swapdb"]);
    Setup::default()
        .line(&format!("repl-diskless-sync {diskless}"))
        .line(&format!("repl-diskless-load {load}"))
        // Clients create keys by commands without options, on whichever server is the primary.
        .args(&OTHER_DEFAULTS.replace("auto-create no", "auto-create yes").replace("1048576", "64mb"))
        .start()
}

#[test]
#[ignore = "make chaos"]
fn failovers_lose_nothing_that_was_acknowledged_with_wait() {
    let failovers = setting("ROLLCALL_CHAOS_FAILOVERS", 6);
    let (run, tally) = (Run::new("failover"), Tally::default());
    let mut random = Random::new(run.seed);
    let mut primary = new_server(&mut random);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(&run, number, LOAD)).collect();
    let mut checked = 0;
    for failover in 1..=failovers {
        let replica = new_server(&mut random);
        replica.replicate(&primary);
        let moment = 50 + random.below(500);
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let mut line = Single::waiting(&primary);
                let (run, tally) = (&run, &tally);
                scope.spawn(move || writer.work(&mut line, run, tally));
            }
            std::thread::sleep(std::time::Duration::from_millis(moment));
            primary.kill();
        });
        replica.client().expect("REPLICAOF NO ONE", "+OK");
        primary = replica;
        let mut line = Single::new(&primary);
        checked += check_all(&mut line, &run, &writers, None);
        assert!(line.is_up(), "the server ended while it was asked:\n{}", primary.log());
        if failover % 10 == 0 || failover == failovers {
            run.say(&format!("{failover} failovers; {}; {checked} looked for after them", run.load()));
        }
    }
    finish(&mut Single::new(&primary), &run, &mut writers, &tally);
    primary.assert_up();
}
