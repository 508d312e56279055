use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const LOWER: &str = "0123abcd-ef01-2345-6789-abcdef012345";

/// The encoding of `item` in a set whose members begin with `prefix`.
pub(in super::super) fn record(item: &[u8], prefix: &[u8]) -> Vec<u8> {
    let record = Record::of(item, prefix);
    let mut bytes = vec![0; record.len()];
    record.put(&mut bytes, 0);
    bytes
}

/// Whether `bytes` begin with the record of `item` in a set whose members begin with `prefix`.
fn begins(bytes: &[u8], item: &[u8], prefix: &[u8]) -> bool {
    let is_member = || Member::split(bytes, front(prefix)).is_some_and(|(member, _)| member == *item);
    Record::begins_plainly(bytes, item).unwrap_or_else(is_member)
}

/// The front of a set with this prefix, which is not one of numbers.
fn front(prefix: &[u8]) -> Front<'_> {
    Front { prefix, width: 0 }
}

/// Texts for each kind of record, and texts that just miss a kind.
pub(in super::super) fn texts() -> impl Strategy<Value = Vec<u8>> {
    let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let nearly = (uuid, 0usize..36, any::<u8>()).prop_map(|(text, at, other)| {
        let mut text = text.into_bytes();
        text[at] = other;
        text
    });
    prop_oneof![
        4 => uuid.prop_map(String::into_bytes),
        2 => uuid.prop_map(|text| text.to_uppercase().into_bytes()),
        2 => nearly,
        2 => any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        2 => "[0-9]{1,20}".prop_map(String::into_bytes),
        2 => (0u32..1000).prop_map(|number| number.to_string().into_bytes()),
        2 => "[0-9a-f]{1,70}".prop_map(String::into_bytes),
        2 => "[0-9A-F]{1,70}".prop_map(String::into_bytes),
        1 => "[0-9a-fA-F-]{1,70}".prop_map(String::into_bytes),
        2 => (0u32..1000).prop_map(|number| format!("user:{number}").into_bytes()),
        1 => "user:[0-9]{0,20}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..200),
    ]
}

#[test]
fn records_are_pinned() {
    let bytes = *b"\x01\x23\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45";
    let upper = LOWER.to_uppercase();
    for (item, head, body) in [
        (&b""[..], &b"\0"[..], &b""[..]),
        (b"ann", b"\x03", b"ann"),
        (b"0", b"\xc1", b"\0"),
        (b"255", b"\xc1", b"\xff"),
        (b"256", b"\xc2", b"\0\x01"),
        (b"00", b"\x02", b"00"),
        (b"-1", b"\x02", b"-1"),
        (b"12345678", b"\xc3", b"\x4e\x61\xbc"),
        (b"9223372036854775807", b"\xc8", b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
        (b"9223372036854775808", b"\x13", b"9223372036854775808"),
        (b"18446744073709551616", b"\x8a", b"\x18\x44\x67\x44\x07\x37\x09\x55\x16\x16"),
        (b"01234567", b"\x84", b"\x01\x23\x45\x67"),
        (b"0012abcdef", b"\x85", b"\0\x12\xab\xcd\xef"),
        (b"0012ABCDEF", b"\xa5", b"\0\x12\xab\xcd\xef"),
        (b"0012abcdeF", b"\x0a", b"0012abcdeF"),
        (b"012abc", b"\x06", b"012abc"),
        (b"0012abcde", b"\x09", b"0012abcde"),
        (&[b'f'; 64], b"\xa0", &[0xff; 32]),
        (&[b'F'; 64], b"\xc0", &[0xff; 32]),
        (&[b'f'; 66], b"\x42", &[b'f'; 66]),
        (LOWER.as_bytes(), b"\xd0", &bytes),
        (upper.as_bytes(), b"\xd1", &bytes),
        // A `g` is not a hexadecimal digit, but has the same low bits as a `7`.
        (b"0123abcg-ef01-2345-6789-abcdef012345", b"\x24", b"0123abcg-ef01-2345-6789-abcdef012345"),
        (&[b'0'; 127], b"\x7f", &[b'0'; 127]),
        (&[b'0'; 128], b"\xe0\x80\0", &[b'0'; 128]),
        (&[b'z'; 0x1_0203], b"\xe1\x03\x02", &[b'z'; 0x1_0203]),
    ] {
        assert_eq!(record(item, b""), [head, body].concat(), "{:?}", item.escape_ascii().to_string());
        // The prefix (here `an`) changes only the encoding of texts that consist of the prefix and a number.
        assert_eq!(record(item, b"an"), record(item, b""));
    }
    for (item, written) in [
        (&b"user:0"[..], &b"\xd8\0"[..]),
        (b"user:65536", b"\xda\0\0\x01"),
        (b"user:9223372036854775807", b"\xdf\xff\xff\xff\xff\xff\xff\xff\x7f"),
        (b"user:9223372036854775808", b"\x18user:9223372036854775808"),
        (b"user:", b"\x05user:"),
        (b"user:07", b"\x07user:07"),
        (b"user:1a", b"\x07user:1a"),
        (b"users:1", b"\x07users:1"),
    ] {
        assert_eq!(record(item, b"user:"), written);
    }
}

#[test]
fn the_first_member_decides_the_prefix() {
    let long = [&[b'x'; MOST_PREFIX], &b"1"[..]].concat();
    for (item, prefix) in [
        (&b"user:17"[..], &b"user:"[..]),
        (b"a1b2", b"a1b"),
        (&long, &[b'x'; MOST_PREFIX]),
        (&[b"x", &long[..]].concat(), b""),
        (b"17", b""),
        (b"user:", b""),
        (b"user:017", b""),
        (b"user:9223372036854775808", b""),
        (b"abcdef12", b""),
        (LOWER.as_bytes(), b""),
    ] {
        let (first, found) = Record::first(item);
        let of = Record::of(item, prefix);
        assert_eq!((found, first.code, first.body), (prefix, of.code, of.body));
    }
}

#[test]
fn invalid_records_are_not_split() {
    for first in (0x80..=0x83).chain(0xa1..=0xa3).chain(0xc9..=0xcf).chain(0xd2..=0xd7) {
        let mut bytes = [0; 100];
        bytes[0] = first;
        assert_eq!(Member::split(&bytes, front(b"user:")), None, "{first:#x}");
    }
    for bytes in [&b""[..], b"\x01", b"\x84abc", b"\xc2a", b"\xd0", b"\xe0", b"\xe0\x01", b"\xe0\x02\0a"] {
        assert_eq!(Member::split(bytes, front(b"user:")), None);
    }
}

fn prefixes() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![&b""[..], b"user:", b"u", &[b'a'; MOST_PREFIX]])
}

proptest! {
    #[test]
    fn bytes_are_compared_to_the_last(len in 0usize..200, at in any::<prop::sample::Index>()) {
        let item: Vec<u8> = (0..len as u8).collect();
        prop_assert!(is_same(&item, &item.clone()));
        let mut other = item.clone();
        if len > 0 {
            other[at.index(len)] ^= 1;
            prop_assert!(!is_same(&item, &other));
        }
        other.push(0);
        prop_assert!(!is_same(&item, &other));
    }

    #[test]
    fn texts_come_back_byte_for_byte(text in texts(), other in texts(), prefix in prefixes()) {
        let record = record(&text, prefix);
        let most = text.len() + if text.len() < 128 { 1 } else { 3 };
        prop_assert!(record.len() <= most);
        let behind = [&record[..], b"behind"].concat();
        let (member, rest) = Member::split(&behind, front(prefix)).unwrap();
        prop_assert_eq!((member.len(), rest), (record.len(), &b"behind"[..]));
        prop_assert_eq!(&*member.text(), &text[..]);
        let mut buffer = [7; MOST_CHARACTERS];
        prop_assert_eq!(member.text_in(&mut buffer), &text[..]);
        prop_assert_eq!(member.counted_bytes(), counted_bytes(&text));
        prop_assert!(member.is_record_of(&text, front(prefix)) && begins(&behind, &text, prefix));
        prop_assert_eq!(begins(&behind, &other, prefix), text == other);
        let number = |prefix| Record::of(&text, prefix).number(prefix);
        prop_assert_eq!(member.number(), number(b"").or(number(prefix)));
    }

    #[test]
    fn members_are_equal_if_their_texts_are(
        (one, other) in prop_oneof![(texts(), texts()), texts().prop_map(|text| (text.clone(), text))],
        (ours, theirs) in (prefixes(), prefixes()),
    ) {
        let (records, is_same) = ((record(&one, ours), record(&other, theirs)), one == other);
        let (own, theirs) = (Member::split(&records.0, front(ours)), Member::split(&records.1, front(theirs)));
        prop_assert_eq!(own.unwrap().0 == theirs.unwrap().0, is_same);
    }

    #[test]
    fn records_match_their_text_only_as_encoded(
        first in any::<u8>(), body in vec(any::<u8>(), 0..200), prefix in prefixes(),
    ) {
        let bytes = [&[first][..], &body].concat();
        if let Some((member, _)) = Member::split(&bytes, front(prefix)) {
            let text = member.text().to_vec();
            let own = record(&text, prefix);
            let is_own = bytes.starts_with(&own) && own.len() == usize::from(member.header) + member.body.len();
            prop_assert_eq!(member.is_record_of(&text, front(prefix)), is_own);
            prop_assert!(!is_own || begins(&bytes, &text, prefix));
        }
    }
}
