//! A primary and its replica, whose values must be equal at all times.

use crate::fixture::{assert_same, snapshot};
use crate::server::{Server, Setup};

/// Defaults of the replica's module only. None of them may influence the values that it receives. The replica's size
/// limit is below the size of some test values.
pub const OTHER_DEFAULTS: &str = "bf-error-rate 0.2 bf-initial-size 7 bf-expansion-factor 5 lc-error-rate 0.2 \
                              lc-exact-limit 3 lc-exact-bytes 30 hash-seed 12345 auto-create no \
                              max-key-bytes 1048576";

/// A primary and its replica. If the server supports it, the replica ends when a replicated command fails.
pub struct Pair {
    /// The primary, which takes the writes.
    pub primary: Server,
    /// The replica.
    pub replica: Server,
}

impl Pair {
    /// A primary and a replica that use the clock of the machine.
    pub fn start() -> Pair {
        Pair::with_args("")
    }

    /// A pair like that of [`Pair::start`], with arguments of the primary's module.
    pub fn with_args(args: &str) -> Pair {
        Pair::of(Setup::default().args(args), Setup::default())
    }

    /// A primary and a replica with these setups; the replica's module gets other defaults.
    pub fn of(primary: Setup, replica: Setup) -> Pair {
        let pair = Pair { primary: primary.start(), replica: replica.args(OTHER_DEFAULTS).start() };
        if pair.replica.config("propagation-error-behavior").is_some() {
            let mut client = pair.replica.client();
            client.expect("CONFIG SET propagation-error-behavior panic-on-replicas", "+OK");
        }
        // A replica of Valkey 9.1 checks for the complete file only once a second, so pairs load directly from the
        // connection. Other replicas of the tests load from files.
        if pair.primary.version().is_valkey {
            for server in [&pair.primary, &pair.replica] {
                server.client().expect("CONFIG SET repl-diskless-load flush-before-load", "+OK");
            }
        }
        pair.replica.replicate(&pair.primary);
        pair
    }

    /// Panics unless the replica, once it has received everything, has equal values.
    #[track_caller]
    pub fn assert_equal(&self, after: &str) {
        // A key may expire between the two digests. Then the data is equal, and so are the next digests.
        for _ in 0..3 {
            self.replica.wait_synced(&self.primary);
            let (primary, replica) =
                (self.primary.client().text("DEBUG DIGEST"), self.replica.client().text("DEBUG DIGEST"));
            if primary == replica {
                return;
            }
            assert_same(&snapshot(&mut self.replica.client()), &snapshot(&mut self.primary.client()));
        }
        panic!("the data sets differ after {after}");
    }

    /// Panics if a replicated command failed on the replica.
    #[track_caller]
    pub fn assert_no_errors(&mut self) {
        self.primary.assert_up();
        self.replica.assert_up();
        let mut client = self.replica.client();
        assert_eq!(client.info("total_error_replies"), "0", "{}", client.text("INFO errorstats"));
        assert!(!self.replica.log().contains("CRITICAL"), "{}", self.replica.log());
    }

    /// Two numbers that change with every write: the replication offset, and the server's count of changes.
    pub fn marks(&self) -> [i64; 2] {
        let mut client = self.primary.client();
        ["master_repl_offset", "rdb_changes_since_last_save"].map(|field| client.info_number(field))
    }
}
