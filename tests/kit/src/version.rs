//! Kinds and versions of servers, and what they can do.

/// A server's kind and version.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Whether the server is Valkey; otherwise it is Redis.
    pub is_valkey: bool,
    /// The major version, `7` of 7.0.15.
    pub major: u32,
    /// The minor version, `0` of 7.0.15.
    pub minor: u32,
}

impl Version {
    /// Whether modules may register parameters without their name as prefix (Redis 8).
    pub fn has_unprefixed_configs(self) -> bool {
        !self.is_valkey && self.major >= 8
    }

    /// Whether modules may add ACL categories (Redis 7.4, Valkey 8).
    pub fn has_acl_categories(self) -> bool {
        if self.is_valkey { self.major >= 8 } else { (self.major, self.minor) >= (7, 4) }
    }

    /// Whether `ACL CAT` lists the commands of a module's categories. Redis 7.4.1 and Valkey 8.0.1 accept these
    /// categories only in ACL rules.
    pub fn lists_acl_categories(self) -> bool {
        self.major >= if self.is_valkey { 9 } else { 8 }
    }

    /// Whether slots can move in one piece (Redis 8.4, Valkey 9).
    pub fn moves_slots(self) -> bool {
        if self.is_valkey { self.major >= 9 } else { (self.major, self.minor) >= (8, 4) }
    }
}
