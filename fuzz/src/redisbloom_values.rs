//! Builds RedisBloom's filters and headers field by field, and damages them. The server tests use this module too.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::Rules;
use rollcall_core::window::Time;

pub use crate::fields::{Field, Fields, written};
pub use crate::values::{Dump, dump_of};

use Field::{Double, String as Bytes, Unsigned};

pub fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
    Params { error_rate, capacity, expansion, seed: 0 }
}

pub fn classic(params: Params) -> BloomFilter {
    BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap()
}

pub fn item(index: usize) -> Vec<u8> {
    format!("item:{index}").into_bytes()
}

/// A filter with several sub-filters.
pub fn grown() -> BloomFilter {
    let mut filter = classic(params(0.01, 50, 2));
    filter.live(Time::Reached).add_all(&(0..200).map(item).collect::<Vec<_>>(), &Unlimited, |_| ()).unwrap();
    assert_eq!(filter.sub_filters().len(), 3);
    filter
}

/// The rules of a classic filter.
pub fn rules(filter: &BloomFilter) -> Rules {
    filter.chain()[0].classic().unwrap().rules
}

/// A header of RedisBloom's dump, field by field.
#[derive(Debug, Clone)]
pub struct HeaderOf {
    pub size: u64,
    pub count: u32,
    pub options: u32,
    pub growth: u32,
    pub links: Vec<Link>,
}

#[derive(Debug, Clone)]
pub struct Link {
    pub bytes: u64,
    pub bits: u64,
    pub size: u64,
    pub error_rate: f64,
    pub bits_per_item: f64,
    pub hashes: u32,
    pub capacity: u64,
    pub n2: u8,
}

impl HeaderOf {
    pub fn of(filter: &BloomFilter) -> Self {
        let links = filter.chain().iter().map(|sub_filter| {
            let shape = sub_filter.classic().unwrap().shape;
            Link {
                bytes: shape.num_bytes,
                bits: shape.num_bits(),
                size: sub_filter.info().num_items,
                error_rate: shape.error_rate,
                bits_per_item: shape.bits_per_item,
                hashes: shape.hashes,
                capacity: shape.capacity,
                n2: shape.n2,
            }
        });
        let Rules { options, growth } = rules(filter);
        HeaderOf {
            size: filter.num_items(),
            count: filter.sub_filters().len() as u32,
            options,
            growth,
            links: links.collect(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.options.to_le_bytes());
        bytes.extend(self.growth.to_le_bytes());
        for link in &self.links {
            bytes.extend(link.bytes.to_le_bytes());
            bytes.extend(link.bits.to_le_bytes());
            bytes.extend(link.size.to_le_bytes());
            bytes.extend(link.error_rate.to_bits().to_le_bytes());
            bytes.extend(link.bits_per_item.to_bits().to_le_bytes());
            bytes.extend(link.hashes.to_le_bytes());
            bytes.extend(link.capacity.to_le_bytes());
            bytes.push(link.n2);
        }
        bytes
    }

    /// An RDB value with the same fields. All its bitmaps are empty.
    pub fn rdb(&self) -> Vec<Field> {
        let mut fields = vec![
            Unsigned(self.size),
            Unsigned(u64::from(self.count)),
            Unsigned(u64::from(self.options)),
            Unsigned(u64::from(self.growth)),
        ];
        for link in &self.links {
            fields.extend([
                Unsigned(link.capacity),
                Double(link.error_rate),
                Unsigned(u64::from(link.hashes)),
                Double(link.bits_per_item),
                Unsigned(link.bits),
                Unsigned(u64::from(link.n2)),
                Bytes(vec![0; link.bytes.min(1 << 20) as usize]),
                Unsigned(link.size),
            ]);
        }
        fields
    }
}
