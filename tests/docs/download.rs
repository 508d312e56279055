use rollcall_core::bloom::BloomFilter;
use rollcall_core::size_limit::MaxBytes;
use rollcall_core::persist;

/// Downloads the filter at `key`, of at most 1 GiB.
fn download(server: &mut redis::Connection, key: &str) -> Result<BloomFilter, Box<dyn std::error::Error>> {
    let payload: Vec<u8> = redis::cmd("DUMP").arg(key).query(server)?;
    Ok(persist::from_bytes(&payload, &MaxBytes(1 << 30))?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = redis::Client::open("redis://127.0.0.1:6379/")?.get_connection()?;
    let filter = download(&mut server, "contacts")?;
    println!("{} contacts; with ann: {}", filter.num_items(), filter.may_contain(b"ann@example.com"));
    Ok(())
}
