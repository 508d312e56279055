use super::*;
use crate::counting::counter::tests::{RATES, counter, params};
use crate::counting::held::ring::TagRing;
use crate::counting::stored::CounterForm;
use crate::window::{ClockSource, Window};

/// The whole payload of a counter.
pub(crate) fn encode(counter: &Counter) -> Vec<u8> {
    counter.payload_part().into_owned()
}

#[test]
fn payloads_are_pinned() {
    assert_eq!(encode(&counter(params(RATES[2], 250), [1, 2])), b"\xc9\x05user:\x01\x02");
    // Bits 1898 and 3380 of 4096 are set. With 10 low bits, the first position is split into 1 and 874. The
    // distance to the second position is split into 1 and 457.
    assert_eq!(encode(&counter(params(RATES[2], 0), [2, 1])), [0xa9, 0x5d, 0x72]);
}

/// Tests each code of a segment, and slice tags of 4 and of 8 bits. One tag of 4 bits is alone in its byte.
#[test]
fn codes_and_tags_are_pinned() {
    let params = params(RATES[0], 250);
    let mut counts = SegmentCounts::default();
    [256, 255, 128, 1].into_iter().enumerate().for_each(|(segment, count)| counts.add(segment, count));
    // In the first segment all bits except the last, 255, are set. In the last segment only the first bit is set.
    let [free, bits, marked] = [&[0xfd, 0x01][..], &[0x0f; 32], &[0]];
    let load = |ring, payload: &[u8]| {
        let form = CounterForm { params, lower_bound: 0, counts: Some(counts), ring };
        form.load(payload)
    };
    let plain = [free, bits, marked].concat();
    assert_eq!(encode(&load(None, &plain).unwrap()), plain);
    for (slices, of_a_tag, last) in [(4, 4, 0x01u8), (60, 8, 0x01)] {
        let window = Window::new(10 * slices, slices as u32, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
        let tags = |count: usize| vec![if of_a_tag == 4 { 0x11 } else { 0x01 }; (count * of_a_tag) / 8];
        let odd = if of_a_tag == 4 { [tags(254), vec![last]].concat() } else { tags(255) };
        let payload = [&tags(256), free, &odd, bits, &tags(128), marked, &[last]].concat();
        let ring = Some(TagRing::new(window, 0));
        assert_eq!(encode(&load(ring, &payload).unwrap()), payload);
        // The slice of one tag has expired, and in the other case the last half byte is not 0.
        let name = |payload: &[u8]| match load(ring, payload) {
            Err(Error::Corrupt { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        let with = |tag| [&payload[..payload.len() - 1], &[tag]].concat();
        let wrong = if of_a_tag == 4 { [0x00, 0x02, 0x11] } else { [0x00, 0x02, 0x80] };
        assert_eq!(wrong.map(|tag| name(&with(tag))), ["tag"; 3]);
        assert!(["tag", "coded payload"].contains(&name(&payload[1..])));
    }
}
