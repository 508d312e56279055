//! The slot of a key in a cluster.

/// Number of hash slots in a cluster.
pub const SLOTS: usize = 16_384;

/// The slot of a key, computed from its hash tag in braces if it has one (Redis cluster specification).
pub fn slot(key: &[u8]) -> u16 {
    crc16(tag(key).unwrap_or(key)) % SLOTS as u16
}

/// The hash tag of a key: the text between the first `{` and the next `}`. `None` if there is no tag, or an empty one.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let start = key.iter().position(|&byte| byte == b'{')? + 1;
    let len = key[start..].iter().position(|&byte| byte == b'}')?;
    (len > 0).then(|| &key[start..start + len])
}

/// A temporary name for `key` in the same slot: `prefix`, then the hash tag or the key in braces, then the key.
///
/// `None` if no such name exists: the key is empty, or has a closing brace and no hash tag.
pub fn beside(prefix: &str, key: &[u8]) -> Option<Vec<u8>> {
    let deciding = tag(key).unwrap_or(key);
    if deciding.is_empty() || deciding.contains(&b'}') {
        return None;
    }
    let mut name = prefix.as_bytes().to_vec();
    name.push(b'{');
    name.extend_from_slice(deciding);
    name.extend_from_slice(b"}:");
    name.extend_from_slice(key);
    Some(name)
}

/// CRC-16/XMODEM, which the cluster specification prescribes.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // The slots are the ones that CLUSTER KEYSLOT reports.
        for (key, expected) in [("foo", 12182), ("{user1000}.following", 3443), ("foo{}{bar}", 8363), ("", 0)] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }

    #[test]
    fn a_temporary_name_has_the_slot_of_its_key() {
        for key in ["a", "a{b}c", "{x", "foo{}bar", "a{b"] {
            match beside("rollcall:", key.as_bytes()) {
                Some(name) => assert_eq!(slot(&name), slot(key.as_bytes()), "{key}"),
                None => assert!(key.contains('}'), "{key}"),
            }
        }
        assert_eq!(beside("p:", b"a}b"), None);
    }
}
