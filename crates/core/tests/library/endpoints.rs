//! The parsed endpoints, each on one line: the scheme, the hosts with their kinds, and the path.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

use memgate_core::state;
use memgate_model::memory_view::{EndpointSource, EndpointView, Why};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_platforms::endpoint_view::parse;
use memgate_primitives::budget::Budget;
use serde_json::json;

/// `scheme host:port=what path`, where `L` is loopback, `P` private, `K` link-local and `C` in the cluster, and `?`
/// stands before a host that clients read in two ways.
fn shown(text: &str) -> String {
    shown_by(&parsed(text, &memgate_platforms::default_settings()))
}

fn parsed(text: &str, settings: &Settings) -> EndpointView {
    let mut snapshot: Snapshot = state::empty(settings.clone());
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "data"}, "spec": {},
    });
    state::add(&mut snapshot, &service).expect("a Service");
    let work = Budget::default();
    parse(EndpointSource::Literal, text, "team", &mut StateReader::new(&snapshot, &work))
}

fn shown_by(view: &EndpointView) -> String {
    let mut words: Vec<String> = view.scheme.iter().cloned().collect();
    let unknown = |why: &Why| if *why == Why::TwoReadings { "?".to_owned() } else { why.to_string() };
    words.extend(view.unknown.iter().map(unknown));
    words.extend(view.hosts.iter().map(|host| {
        let port = host.port.map(|port| format!(":{port}")).unwrap_or_default();
        let flags =
            [(host.loopback, 'L'), (host.private, 'P'), (host.link_local, 'K'), (host.in_cluster, 'C')];
        let flags: String = flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).collect();
        let equals = if flags.is_empty() { "" } else { "=" };
        format!("{}{port}{equals}{flags}", host.host)
    }));
    words.extend(view.path.clone());
    words.join(" ")
}

#[test]
fn reads_urls() {
    for (text, expected) in [
        ("https://Qdrant.Example.COM.:6333/v1", "https qdrant.example.com:6333 /v1"),
        (" http://h \n", "http ? h…"),
        ("HTTP://user:pass@h:80/a?token=x#y", "http h:80=C /a"),
        ("http://h?a/b", "http h=C"),
        ("http://h:/", "http ? h=C /"),
        ("http://h:65536", "http ? h…"),
        ("http://[2001:DB8::1]:80/", "http 2001:db8::1:80 /"),
        ("http://%31%32%37.0.0.1", "http ? 127.0.0.1…"),
        ("h:80/x", "h:80=C /x"),
        ("//u@h/x", "h=C /x"),
        ("redis://:p@h:6379/0", "redis h:6379=C /0"),
        ("mongodb+srv://u:p@a.example,b.example:1/x", "mongodb+srv a.example b.example:1 /x"),
        ("a.example:9092,b.example:9093", "a.example:9092 b.example:9093"),
        ("jdbc:postgresql://h.example/db", "jdbc:postgresql h.example /db"),
        ("://h.example", "? h.example…"),
        ("evil/x://h.example/y", "? h.example…"),
        ("u:cret@evil://h.example/y", "? …"),
        ("jdbc:sqlserver://h.example:1;user=sa;password=a,b", "jdbc:sqlserver ? h.example…"),
        ("http://$(HOST)/", "a value holds $(…)"),
        ("", "=L"),
        ("http://", "http ? …"),
        ("redis://", "redis =L"),
        (":6379", ":6379=L"),
        ("root:p@tcp(db.example:3306)/m", "? …"),
        ("tcp(db.example:3306)/m", "? tcp…"),
        ("root@unix(/tmp/mysql.sock)/m", "? …"),
        ("root:p@/m", "=L /m"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn reads_every_host_of_a_connection_string() {
    for (text, expected) in [
        ("postgres://u:p@a.example:1,b.example/x", "postgresql a.example:1 b.example /x"),
        ("postgresql://a.example/x?host=b.example&port=7", "postgresql a.example:7 b.example:7 /x"),
        ("postgres://a.example/x?ho%73t=b.example", "postgresql a.example b.example /x"),
        ("postgres:///x?host=a.example,b.example&port=1,2", "postgresql a.example:1 b.example:2 /x"),
        ("postgres:///x?host=%2Frun%2Fpg", "postgresql /run/pg=L /x"),
        ("postgres:///x?hostaddr=10.0.0.1&host=db", "postgresql 10.0.0.1=P db=C /x"),
        ("postgres:///x?host=::1", "postgresql ::1=L /x"),
        ("postgres:///x", "postgresql =L /x"),
        ("https://a.example/x?host=b.example", "https a.example /x"),
        ("host=A.Example port=5 user=u password=p", "postgresql a.example:5"),
        ("host = 'a.example,b.example' port=1,2", "postgresql a.example:1 b.example:2"),
        (r"host='a\'b.example' x=y://c", "postgresql ? a…"),
        ("host=a.example HOST=b.example", "postgresql a.example b.example"),
        ("host=a.example;Host=b.example", "postgresql ? a.example…"),
        ("postgres+psycopg://a.example/x?host=b.example", "postgres+psycopg a.example b.example /x"),
        ("postgres://a.example/x?y=z#&host=b.example", "postgresql ? a.example…"),
        ("postgres://a.example?x@b.example/y", "postgresql ? …"),
        (
            "jdbc:postgresql://a.example/x?PGHOST=b.example&PGPORT=7",
            "jdbc:postgresql a.example:7 b.example:7 /x",
        ),
        ("postgres://a.example:5432/x?port=7", "postgresql a.example:5432 a.example:7 /x"),
        ("mysql+pymysql://a.example/x?host=b.example", "mysql+pymysql a.example b.example /x"),
        ("a.example/x?host=b.example", "a.example b.example /x"),
        ("mssql+pyodbc://a.example/x?odbc_connect=Server%3Db", "mssql+pyodbc ? a.example…"),
        ("host=a.example hostaddr=127.0.0.1 host=b.example", "postgresql a.example 127.0.0.1=L b.example"),
        ("dbname=x", "postgresql =L"),
        ("host=", "postgresql =L"),
        ("host='a.example", "postgresql a.example"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn shows_nothing_of_a_password_with_a_character_that_ends_it() {
    for text in [
        "postgres://user:se/cret@a.example/x",
        "postgres://user:se?cret@a.example/x",
        "redis://user:se#cret@a.example/x",
        "redis://user:se:cret@a.example/x",
        "redis://user:1:cret/x@a.example/x",
        "user:se/cret@tcp(a.example)/x",
        "user:se/cret@a.example/x",
    ] {
        let shown = shown(text);
        assert!(!shown.contains("cret") && !shown.contains("user"), "{text}: {shown}");
    }
    assert_eq!(shown("redis://user:12/cret@a.example"), "redis user:12=C");
    assert_eq!(shown("http://h/x;token=cret/y"), "http h=C /x;token=******");
    assert_eq!(shown("redis://user:se:cret"), "redis ? user…");
}

/// The view has nothing of a credential, wherever the text has it and whatever makes its host doubtful.
#[test]
fn shows_no_credential_of_any_text() {
    let mut texts: Vec<String> = [
        "host=ho%st user=u password=sup@ZEBRA dbname=x",
        "host=ho%st password='s@up r@ZEBRA' dbname=x",
        "host=h.example;password=ZEBRA",
        "Host=h.example;Password=ZEBRA@x",
        "password=ZEBRA@ZEBRA host=h%",
        "password='ZEBRA host=x",
        "host='h password=ZEBRA'",
        "host=h\\ password=ZEBRA",
        "host=/run/pg@x password=ZEBRA@ZEBRA",
        "u:ZEBRA@evil://h/x",
    ]
    .map(str::to_owned)
    .to_vec();
    for scheme in ["https://", "postgres://", "jdbc:postgresql://", "mysql+pymysql://", "//", ""] {
        for user in ["", "u:ZEBRA@", "ZEBRA@ZEBRA@", "u:x@ZEBRA\\@", "u:p/ZEBRA@", "u:p ZEBRA@"] {
            for host in
                ["h.example", "go od.example", "h%2e", "h.example:x", "x\\@h", "tcp(h)", "h:1:2", "h;x", ""]
            {
                for tail in [
                    "/v1?token=ZEBRA",
                    "/v1?token=abc@ZEBRA",
                    "/v1?token=a@ZEBRA/ZEBRA",
                    "/v1?password=ZEBRA@tcp(ZEBRA)/ZEBRA",
                    "/ZEBRA@x/ZEBRA",
                    "/x?password=ZEBRA#a@ZEBRA",
                    "#ZEBRA@x",
                    "#x@ZEBRA",
                    "?a=ZEBRA@ZEBRA",
                    "?token=ZEBRA://ZEBRA@x",
                ] {
                    texts.push(format!("{scheme}{user}{host}{tail}"));
                }
            }
        }
    }
    for text in texts {
        let view = parsed(&text, &memgate_platforms::default_settings());
        assert!(!format!("{view:?}").to_uppercase().contains("ZEBRA"), "{text}: {view:?}");
    }
}

#[test]
fn knows_what_a_host_is() {
    for (host, expected) in [
        ("localhost", "L"),
        ("LOCALHOST.", "L"),
        ("a.localhost", "L"),
        ("127.9.9.9", "L"),
        ("0.0.0.0", "L"),
        ("2130706433", "L"),
        ("0x7f.1", "L"),
        ("0177.0.0.1.", "L"),
        ("[::1]", "L"),
        ("[::]", "L"),
        ("[::ffff:127.0.0.1]", "L"),
        ("[::ffff:7f00:1]", "L"),
        ("10.1.2.3", "P"),
        ("172.16.0.1", "P"),
        ("172.32.0.1", ""),
        ("192.168.0.1", "P"),
        ("[fd00::1]", "P"),
        ("[::ffff:10.0.0.1]", "P"),
        ("100.63.255.255", ""),
        ("100.64.0.1", "P"),
        ("100.127.255.255", "P"),
        ("100.128.0.1", ""),
        ("[::ffff:100.64.0.1]", "P"),
        ("[64:ff9b::10.1.2.3]", "P"),
        ("[64:ff9b::7f00:1]", "L"),
        ("[64:ff9b::a9fe:a9fe]", "K"),
        ("[64:ff9b::8.8.8.8]", ""),
        ("[64:ff9b:1::10.1.2.3]", ""),
        ("169.254.169.254", "K"),
        ("[fe80::1%25eth0]", "K"),
        ("[febf::1]", "K"),
        ("8.8.8.8", ""),
        ("[2001:db8::1]", ""),
        ("kb", "C"),
        ("kb.", "C"),
        ("kb.team", "C"),
        ("kb.other", ""),
        ("db.data", "C"),
        ("db.data.svc", "C"),
        ("KB.any.SVC", "C"),
        ("kb.any.svc.cluster.local.", "C"),
        ("kb.any.svc.cluster.local.example", ""),
        ("kb.any.svc.corp", ""),
        ("svc.example.com", ""),
        ("xsvc.cluster.local", ""),
    ] {
        let shown = shown(&format!("http://{host}:80"));
        let flags = shown.rsplit_once('=').map_or("", |(_, flags)| flags);
        assert_eq!(flags, expected, "{host}: {shown}");
    }
}

#[test]
fn the_domain_of_the_cluster_is_a_setting() {
    let mut settings = memgate_platforms::default_settings();
    settings.policies.cluster_domain = "Corp.Example.".to_owned();
    for (text, expected) in [
        ("http://kb.any.svc.corp.example", "http kb.any.svc.corp.example=C"),
        ("http://kb.any.svc.cluster.local", "http kb.any.svc.cluster.local"),
        ("http://kb.any.svc", "http kb.any.svc=C"),
    ] {
        assert_eq!(shown_by(&parsed(text, &settings)), expected);
    }
}

#[test]
fn builds_the_url_anew() {
    for (text, url) in [
        ("https://u:p@H:1/a?b=c#d", Some("https://h:1/a")),
        ("postgres://u@[::1]/x", Some("postgresql://[::1]/x")),
        ("h:1", None),
    ] {
        let endpoint = parsed(text, &memgate_platforms::default_settings());
        let found = endpoint.hosts.first().and_then(|host| endpoint.url(host));
        assert_eq!(found.as_deref(), url);
    }
}

/// A parser that compares each character with every other one would not finish.
#[test]
fn reads_long_texts_once() {
    for unit in ["a,", "a=b ", "@", "/", "a:1,", "host=a ", "&host=a", "(", "'", "\\", "%41", ".svc"] {
        let long = unit.repeat(100_000);
        for start in ["", "http://", "postgres://h/?", "host='"] {
            parsed(&format!("{start}{long}"), &memgate_platforms::default_settings());
        }
    }
}
