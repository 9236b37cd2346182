//! JSON that is allowed and hard to read: deep, wide, unusual.

use crate::client::{Answer, post};
use crate::running::Victim;

/// A small multiple of the largest body above what the program needs anyway.
const BOUND_MIB: u64 = 96;
/// The same for objects of a million members. Without a cluster all of them are read, since the schema of
/// their kind may have a word about each.
const WIDE_BOUND_MIB: u64 = 160;

/// What becomes of a review; [`Becomes::Malformed`] is also a refusal with this code.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Becomes {
    Patched,
    LeftAlone,
    Refused,
    Malformed,
}

fn becomes(answer: &Answer) -> Becomes {
    if answer.status == 400 {
        return Becomes::Malformed;
    }
    let response = answer.review();
    if response["status"]["code"] == 400 {
        return Becomes::Malformed;
    }
    match (response["allowed"].as_bool(), response.get("patch")) {
        (Some(true), Some(_)) => Becomes::Patched,
        (Some(true), None) => Becomes::LeftAlone,
        _ => Becomes::Refused,
    }
}

fn review_of(kind: (&str, &str), object: &str) -> Vec<u8> {
    let (group, kind) = kind;
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-1","kind":{{"group":"{group}","version":"v1alpha1","kind":"{kind}"}},"operation":"CREATE","namespace":"team","object":{object}}}}}"#
    )
    .into_bytes()
}

fn pod(member: &str) -> Vec<u8> {
    let labels = r#""labels":{"arkonis.dev/deployment":"scout"}"#;
    review_of(
        ("", "Pod"),
        &format!(r#"{{"metadata":{{{labels}}},"spec":{{"containers":[{{"name":"agent"}}],{member}}}}}"#),
    )
}

fn memory(spec: &str) -> Vec<u8> {
    review_of(("arkonis.dev", "ArkMemory"), &format!(r#"{{"metadata":{{"name":"m"}},"spec":{{{spec}}}}}"#))
}

fn arrays(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn objects(depth: usize) -> String {
    format!("{}0{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

/// An object of so many members, whose keys have three characters each: some come twice.
fn wide(members: usize) -> String {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let letter = |number: usize| char::from(ALPHABET[number % ALPHABET.len()]);
    let mut text = String::from("{");
    for number in 0..members {
        text.push('"');
        text.extend([letter(number), letter(number >> 6), letter(number >> 12)]);
        text.push_str("\":0,");
    }
    text + "\"end\":0}"
}

/// S6 of stress/ATTACKS.md.
#[tokio::test]
async fn depth_does_no_harm() {
    let victim = Victim::start(&[]).await;
    for depth in [127, 128, 129, 10_000, 1_000_000] {
        for deep in [arrays(depth), objects(depth)] {
            for (what, path, sent, expected) in [
                ("a pod", "/mutate", pod(&format!(r#""deep":{deep}"#)), Becomes::Patched),
                (
                    "an unknown field",
                    "/validate",
                    memory(&format!(r#""backend":"in-context","deep":{deep}"#)),
                    Becomes::LeftAlone,
                ),
                (
                    "a section",
                    "/validate",
                    memory(&format!(r#""backend":"in-context","redis":{deep}"#)),
                    Becomes::Refused,
                ),
                ("a text", "/validate", memory(&format!(r#""backend":{deep}"#)), Becomes::Refused),
            ] {
                // An object is a valid value in this place.
                let section = what == "a section" && deep.starts_with('{');
                let answer = victim.ask(&post(path, &sent)).await;
                assert!(becomes(&answer) == expected || section, "{what}, {depth} deep: {}", answer.text());
            }
            let outside = format!(r#"{{"request":{{"uid":{deep}}}}}"#);
            assert_eq!(becomes(&victim.ask(&post("/mutate", outside.as_bytes())).await), Becomes::Malformed);
            let unclosed = "[".repeat(depth);
            assert_eq!(becomes(&victim.ask(&post("/mutate", unclosed.as_bytes())).await), Becomes::Malformed);
        }
    }
    assert!(victim.peak_mib() < BOUND_MIB, "{} MiB", victim.peak_mib());
    victim.is_well().await;
}

/// S6 of stress/ATTACKS.md.
#[tokio::test]
async fn a_million_members_do_no_harm() {
    let victim = Victim::start(&[]).await;
    let wide = wide(1_000_000);
    for (what, path, sent, expected) in [
        ("in a pod", "/mutate", pod(&format!(r#""wide":{wide}"#)), Becomes::Patched),
        (
            "in an unknown field",
            "/validate",
            memory(&format!(r#""backend":"in-context","wide":{wide}"#)),
            Becomes::LeftAlone,
        ),
        (
            "as a spec",
            "/validate",
            memory(&format!(r#""backend":"in-context",{}"#, &wide[1..wide.len() - 1])),
            Becomes::LeftAlone,
        ),
        (
            "as a section",
            "/validate",
            memory(&format!(r#""backend":"redis","redis":{wide}"#)),
            Becomes::Refused,
        ),
    ] {
        let answer = victim.ask(&post(path, &sent)).await;
        assert_eq!(becomes(&answer), expected, "{what}: {}", answer.text().len());
        assert!(answer.text().len() < 64 << 10, "{what}: {} bytes", answer.text().len());
    }
    assert!(victim.peak_mib() < WIDE_BOUND_MIB, "{} MiB", victim.peak_mib());
    victim.is_well().await;
}

/// S6 of stress/ATTACKS.md.
#[tokio::test]
async fn unusual_values_are_read_as_go_reads_them() {
    let victim = Victim::start(&[]).await;
    let long = "9".repeat(100_000);
    let nul = String::from_utf8(pod(r#""odd":"a?b""#)).unwrap().replace('?', "\0");
    let bom = [b"\xef\xbb\xbf", &pod(r#""odd":0"#)[..]].concat();
    let latin = String::from_utf8(pod(r#""odd":"?""#)).unwrap();
    let latin: Vec<u8> = latin.bytes().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect();
    let twice = r#""containers":[{"name":"other"},{"name":"agent"}]"#;
    for (what, path, sent, expected) in [
        ("two lists of containers", "/mutate", pod(twice), Becomes::Malformed),
        (
            "the last of two memories",
            "/validate",
            memory(r#""backend":"none","backend":"in-context""#),
            Becomes::LeftAlone,
        ),
        (
            "the last of two, which is wrong",
            "/validate",
            memory(r#""backend":"in-context","backend":"none""#),
            Becomes::Refused,
        ),
        ("a number of 100,000 digits", "/mutate", pod(&format!(r#""odd":{long}"#)), Becomes::Patched),
        ("a number beyond all bounds", "/mutate", pod(r#""odd":-1e99999"#), Becomes::Patched),
        ("a number that is none", "/mutate", pod(r#""odd":NaN"#), Becomes::Malformed),
        ("a number with a zero in front", "/mutate", pod(r#""odd":01"#), Becomes::Malformed),
        ("half a surrogate in an unknown field", "/mutate", pod(r#""odd":"\udc00\ud800""#), Becomes::Patched),
        (
            "half a surrogate in what is read",
            "/validate",
            memory(r#""backend":"\ud800""#),
            Becomes::Malformed,
        ),
        ("an escaped NUL", "/mutate", pod(r#""odd":"a\u0000b""#), Becomes::Patched),
        (
            "an escaped NUL in what is read",
            "/validate",
            memory(r#""backend":"in-context\u0000""#),
            Becomes::Refused,
        ),
        ("a bare NUL", "/mutate", nul.into_bytes(), Becomes::Malformed),
        ("a byte order mark", "/mutate", bom, Becomes::Malformed),
        ("Latin-1", "/mutate", latin, Becomes::Malformed),
        ("a trailing comma", "/mutate", pod(r#""odd":[1,]"#), Becomes::Malformed),
        ("a comment", "/mutate", pod(r#""odd":0 /* no */"#), Becomes::Malformed),
    ] {
        let answer = victim.ask(&post(path, &sent)).await;
        assert_eq!(becomes(&answer), expected, "{what}: {}", answer.text());
    }
    victim.is_well().await;
}
