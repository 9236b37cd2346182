//! Certificates from files that change, as the kubelet changes them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use memgate_certs::tls;
use memgate_model::snapshot::Snapshot;
use memgate_server::{Server, State};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::client::{Connection, post, review};
use crate::running::{Running, options, until};

/// A self-signed certificate for localhost.
struct Pair {
    cert: String,
    key: String,
    der: Vec<u8>,
}

fn pair() -> Pair {
    pair_until(4000)
}

fn pair_until(year: i32) -> Pair {
    pair_from(1975, year)
}

fn pair_from(first: i32, year: i32) -> Pair {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(first, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    let cert = params.self_signed(&key).unwrap();
    Pair { cert: cert.pem(), key: key.serialize_pem(), der: cert.der().to_vec() }
}

/// A mounted Secret: files that are links through `..data` into a directory of their own.
struct Mount(TempDir);

impl Mount {
    fn new(pair: &Pair) -> Self {
        let mount = Self(TempDir::new().unwrap());
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), mount.0.path().join(file)).unwrap();
        }
        mount.swap("first", &pair.cert, &pair.key);
        mount
    }

    /// Puts new files in place as the kubelet does: a new directory, and a link that is renamed.
    fn swap(&self, version: &str, cert: &str, key: &str) {
        let path = self.0.path();
        fs::create_dir(path.join(version)).unwrap();
        fs::write(path.join(version).join("tls.crt"), cert).unwrap();
        fs::write(path.join(version).join("tls.key"), key).unwrap();
        symlink(version, path.join("..data_tmp")).unwrap();
        fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
    }

    fn source(&self) -> tls::CertSource {
        let path = self.0.path();
        tls::CertSource::Files { cert: path.join("tls.crt"), key: path.join("tls.key") }
    }
}

fn start(mount: &Mount) -> Running {
    Running::start(|options| {
        options.tls = mount.source();
        options.timers.reload = Duration::from_millis(20);
    })
}

async fn shows(server: &Running, pair: &Pair) -> bool {
    let connection = Connection::open(server.addresses.webhook, &pair.cert, &["http/1.1"]).await;
    connection.is_ok_and(|connection| connection.certificate() == Some(&pair.der))
}

#[tokio::test]
async fn a_swapped_pair_is_shown_and_open_connections_go_on() {
    let (old, new) = (pair(), pair());
    let mount = Mount::new(&old);
    let server = start(&mount);
    let mut open = Connection::open(server.addresses.webhook, &old.cert, &[]).await.unwrap();
    mount.swap("second", &new.cert, &new.key);
    until("the new certificate should be shown", || shows(&server, &new)).await;
    assert!(!shows(&server, &old).await);
    open.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(open.answer().await.status, 200);
    mount.swap("back", &old.cert, &old.key);
    until("an older certificate is as good as any", || shows(&server, &old)).await;
}

#[tokio::test]
async fn a_bad_pair_changes_nothing() {
    let (old, new) = (pair(), pair());
    let mount = Mount::new(&old);
    let server = start(&mount);
    let failed = "memgate_cert_rotations_total{kind=\"leaf\",result=\"failed\"}";
    let expired = pair_until(2020);
    let bad = [
        ("expired", expired.cert.as_str(), expired.key.as_str()),
        ("half", new.cert.as_str(), old.key.as_str()),
        ("cut", &new.cert[..100], new.key.as_str()),
        ("empty", "", ""),
    ];
    for (count, (version, cert, key)) in (1..).zip(bad) {
        mount.swap(version, cert, key);
        let noticed = || async { server.metric(failed).await == Some(count.to_string()) };
        until("the bad pair should be noticed", noticed).await;
        assert!(shows(&server, &old).await, "{version}");
    }
    fs::remove_file(mount.0.path().join("tls.key")).unwrap();
    let noticed = || async { server.metric(failed).await.as_deref() == Some("5") };
    until("the missing file should be noticed", noticed).await;
    assert!(shows(&server, &old).await);
    fs::write(mount.0.path().join("tls.key"), &new.key).unwrap();
    fs::write(mount.0.path().join("..data/tls.crt"), &new.cert).unwrap();
    until("a good pair should be shown again", || shows(&server, &new)).await;
    assert_eq!(server.health("/readyz").await.status, 200);
}

/// What the files say counts, not when they were written.
#[tokio::test]
async fn files_from_the_past_are_as_good_as_any() {
    let (old, new) = (pair(), pair());
    let mount = Mount::new(&old);
    let server = start(&mount);
    assert!(shows(&server, &old).await);
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    for (file, text) in [("tls.crt", &new.cert), ("tls.key", &new.key)] {
        let path = mount.0.path().join("..data").join(file);
        fs::write(&path, text).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    }
    until("the new certificate should be shown", || shows(&server, &new)).await;
}

/// A pair that is written byte by byte: no half of it is ever shown, and the whole is in the end.
#[tokio::test]
async fn a_pair_that_is_half_written_is_waited_for() {
    let (old, new) = (pair(), pair());
    let mount = Mount::new(&old);
    let server = start(&mount);
    let data = mount.0.path().join("..data");
    let failed = "memgate_cert_rotations_total{kind=\"leaf\",result=\"failed\"}";
    let seen = || async { server.metric(failed).await.map_or(0, |count| count.parse::<u32>().unwrap()) };
    for (file, text) in [("tls.crt", &new.cert), ("tls.key", &new.key)] {
        for part in [1, 2] {
            let before = seen().await;
            fs::write(data.join(file), &text[..text.len() * part / 3]).unwrap();
            until("the half file should be noticed", || async { seen().await > before }).await;
            assert!(shows(&server, &old).await);
        }
        fs::write(data.join(file), text).unwrap();
    }
    until("the whole pair should be shown", || shows(&server, &new)).await;
    assert_eq!(server.health("/readyz").await.status, 200);
}

/// The date is looked at anew each time: a machine that slept through the end of its certificate
/// says so at once.
#[tokio::test]
async fn a_certificate_that_expires_makes_it_unready() {
    let clock = memgate_certs::clock::Clock::default();
    let server = Running::start(|options| options.clock = clock.clone());
    assert_eq!(server.health("/readyz").await.status, 200);
    let year = 365 * 24 * 3600;
    clock.shift(year - 300);
    assert_eq!(server.health("/readyz").await.status, 503, "five minutes are left");
    clock.shift(-600);
    assert_eq!(server.health("/readyz").await.status, 200, "fifteen minutes are left");
    clock.shift(600 + year);
    assert_eq!(server.health("/readyz").await.status, 503);
    clock.shift(-2 * year);
    assert_eq!(server.health("/readyz").await.status, 200);
}

#[tokio::test]
async fn is_not_ready_with_a_certificate_that_has_expired() {
    let (expired, good) = (pair_until(2020), pair());
    let mount = Mount::new(&expired);
    let server = start(&mount);
    let ready = server.health("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("certificate"), "{}", ready.text());
    mount.swap("second", &good.cert, &good.key);
    let ready = || async { server.health("/readyz").await.status == 200 };
    until("a good certificate should make it ready", ready).await;
}

/// The clock of a machine is wrong for a while; the files are not written a second time for that.
#[tokio::test]
async fn a_pair_that_is_refused_for_its_dates_is_taken_when_they_are_right() {
    let year = 365 * 24 * 3600;
    for shift in [2000 * year, -40 * year] {
        let (old, new) = (pair(), pair_from(2000, 3000));
        let (mount, clock) = (Mount::new(&old), memgate_certs::clock::Clock::default());
        let server = Running::start(|options| {
            options.tls = mount.source();
            options.timers.reload = Duration::from_millis(20);
            options.clock = clock.clone();
        });
        clock.shift(shift);
        mount.swap("second", &new.cert, &new.key);
        let failed = "memgate_cert_rotations_total{kind=\"leaf\",result=\"failed\"}";
        let refused = || async { server.metric(failed).await.as_deref() == Some("1") };
        until("the pair should be refused", refused).await;
        assert!(shows(&server, &old).await, "{shift}");
        clock.shift(-shift);
        until("the pair should be taken", || shows(&server, &new)).await;
        assert_eq!(server.metric(failed).await.as_deref(), Some("1"), "{shift}: counted once");
    }
}

#[tokio::test]
async fn is_not_ready_with_a_certificate_that_is_not_valid_yet() {
    let mount = Mount::new(&pair_from(3000, 4000));
    let ready = start(&mount).health("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("not valid yet"), "{}", ready.text());
}

/// Another server may be using it.
#[tokio::test]
async fn a_server_that_gets_no_port_leaves_the_ca_of_another_alone() {
    let directory = TempDir::new().unwrap();
    let (mut options, ca) = options(&directory);
    fs::write(&ca, "the CA of another").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    options.health = taken.local_addr().unwrap();
    let error = Server::bind(options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())))
        .err()
        .unwrap();
    assert!(matches!(error, memgate_server::Error::Bind { .. }), "{error}");
    assert_eq!(fs::read_to_string(&ca).unwrap(), "the CA of another");
}

#[tokio::test]
async fn does_not_start_without_a_certificate() {
    let good = pair();
    let directory = TempDir::new().unwrap();
    let (mut options, _) = options(&directory);
    let (cert, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    fs::write(&cert, &good.cert).unwrap();
    options.tls = tls::CertSource::Files { cert, key: key.clone() };
    let error = |options: &memgate_server::options::Options| {
        let error =
            Server::bind(options.clone(), State::Fixed(Snapshot::new(memgate_platforms::default_settings())))
                .err()
                .unwrap();
        memgate_certs::library_error::explained(&error)
    };
    assert!(error(&options).contains("tls.key: no such file"), "{}", error(&options));
    fs::write(&key, pair().key).unwrap();
    assert!(error(&options).contains("cannot be used together"), "{}", error(&options));
    fs::write(&key, "hello").unwrap();
    assert!(error(&options).contains("no PEM private key"), "{}", error(&options));
}
