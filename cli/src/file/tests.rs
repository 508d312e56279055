use rollcall_core::counting::{self, Counter};
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::window::Time;

use super::{Entry, Kind, Reader, Value, Writer};

#[test]
fn an_unfinished_file_is_removed() {
    let params = counting::Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 7 };
    let mut counter = Counter::new(params).unwrap();
    counter.live(Time::Reached).add(b"ann", &Unlimited).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let mut writer = Writer::create(&path, false).unwrap();
    writer.begin(&Entry::new(Kind::Filter)).unwrap();
    assert_eq!((files(), path.exists()), (1, false));
    drop(writer);
    assert_eq!(files(), 0);
    Writer::create(&path, false).unwrap().finish().unwrap();
    assert!(Writer::create(&path, false).err().unwrap().to_string().contains("exists"));
    let mut writer = Writer::create(&path, true).unwrap();
    writer.store(&Entry::new(Kind::Counter), &Value::Counter(counter)).unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let entry = reader.next_value().unwrap().unwrap();
    let value = reader.load(&entry, &MaxBytes(1 << 20)).unwrap();
    assert!(matches!(value, Value::Counter(counter) if counter.count() == 1));
    assert!(reader.next_value().unwrap().is_none());
    assert_eq!(files(), 1);
}
