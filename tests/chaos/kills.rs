//! Kills a server with SIGKILL under load. After a restart, a server with `appendfsync always` must have every write
//! that it acknowledged.

use crate::check::Tally;
use crate::line::{Line, Single};
use crate::run::{Run, setting};
use crate::writer::{Load, Writer, check_all, finish};
use rollcall_fuzz::random::Random;
use rollcall_testkit::Setup;

const WRITERS: u64 = 4;
const LOAD: Load = Load { commands: 12, items: 60, share: 8, expires: true };

#[test]
#[ignore = "make chaos"]
fn kills_lose_nothing_that_was_acknowledged() {
    let kills = setting("ROLLCALL_CHAOS_KILLS", 12);
    let (run, tally) = (Run::new("kills"), Tally::default());
    let mut random = Random::new(run.seed);
    let mut server = Setup::default()
        .line("appendonly yes")
        .line("appendfsync always")
        .line("auto-aof-rewrite-percentage 50")
        .line("auto-aof-rewrite-min-size 256kb")
        .start();
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(&run, number, LOAD)).collect();
    let mut checked = 0;
    for kill in 1..=kills {
        let moment = 1 + random.below(400);
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let mut line = Single::new(&server);
                let (run, tally) = (&run, &tally);
                scope.spawn(move || writer.work(&mut line, run, tally));
            }
            // Some servers are killed during a snapshot or a rewrite of the AOF.
            let mut client = server.client();
            std::thread::sleep(std::time::Duration::from_millis(moment / 2));
            match random.below(6) {
                0 => drop(client.cmd("BGREWRITEAOF")),
                1 => drop(client.cmd("BGSAVE")),
                2 => {
                    let preamble = random.of(&["yes", "no"]);
                    client.expect(&format!("CONFIG SET aof-use-rdb-preamble {preamble}"), "+OK");
                }
                _ => {}
            }
            std::thread::sleep(std::time::Duration::from_millis(moment - moment / 2));
            server.kill();
        });
        server.start_again();
        let mut line = Single::new(&server);
        checked += check_all(&mut line, &run, &writers, None);
        assert!(line.is_up(), "the server ended while it was asked:\n{}", server.log());
        if kill % 10 == 0 || kill == kills {
            run.say(&format!("{kill} kills; {}; {checked} looked for after them", run.load()));
        }
    }
    // Unacknowledged commands are sent again. Afterwards the outcome of every command is known.
    finish(&mut Single::new(&server), &run, &mut writers, &tally);
    server.assert_up();
}
