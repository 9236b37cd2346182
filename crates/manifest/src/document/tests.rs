use super::*;

/// The documents of a source: each value with its bytes, or each error with its place and message.
type Documents = Vec<Result<(Value, usize, usize), (usize, String)>>;

fn part_by_part(source: &Arc<Source>) -> Documents {
    let found = |document: Result<Document, Error>| match document {
        Ok(document) => Ok((document.value.clone(), document.span().start, document.span().end)),
        Err(Error::Syntax(error)) => Err((error.span.start, error.message)),
        Err(other) => Err((0, other.to_string())),
    };
    each_value(source).map(found).collect()
}

fn as_a_whole(source: &Arc<Source>) -> Documents {
    let (outline, roots) = read_whole(source);
    let found = |root: RootValue| match root {
        Ok((root, value)) => {
            let node = outline.node(root);
            Ok((value, node.content, node.end))
        }
        Err(error) => Err((error.span.start, error.message)),
    };
    let is_not_empty = |found: &Result<(Value, usize, usize), _>| !matches!(found, Ok((Value::Null, ..)));
    roots.into_iter().map(found).filter(is_not_empty).collect()
}

#[test]
fn parts_are_read_as_the_whole_is() {
    for text in [
        "a: 1\n---\nb: 2\n",
        "\u{feff}# x\n---\na: 1\n---\n---\n# none\n---\n- b\n...\n---\nc",
        "--- {a: 1}\n--- !!str b\n--- &x\n- *x\n--- |\n  text\n\n---\n>+\n more\n\n--- 'q'\n",
        "a: |\n  x\n\n\n---\nb: &a 1\nc: *a\n---\nd: *a\n",
        "a: [\n---\nb: 1\n---\nc: \"x\n---\nd: 'y\n---\ne: 1\n\tf: 2\n---\ng: {\n---\n",
        "a:\r\n  b:\r\n---\r\nc: \r\n---\r\n- \r\n- d\r\n",
        "%YAML 1.2\n---\na: 1\n...\n%TAG ! x:\n---\nb: 1\n",
        "a: 1\n... \nb: 2\n---\nc: 3\n",
        "{\"a\": 1} {\"b\": 2}\n[3]",
        "{\"a\": 1}\n---\n{\"b\": 2,}\n",
        "{\"a\": [1, 2}\n---\n{\"b\": 1}\n---\n{\"c\" 1}\n---\n{\"d\": \"x\n--- y\"}\n",
        "a: 1\na: 2\n---\n? [b]\n: c\n---\n<<: 1\n---\nx: *y\n",
    ] {
        let source = Arc::new(Source::new("a.yaml", text));
        assert_eq!(part_by_part(&source), as_a_whole(&source), "{text}");
    }
}

#[test]
fn json_between_markers_is_read_part_by_part() {
    let parts = |text: &str| parse_parts(&Arc::new(Source::new("a.yaml", text))).count();
    assert_eq!(parts("{\"a\": 1}\n---\n{\"b\": 2}\n---\n{\"c\": 3}\n"), 3);
    assert_eq!(parts("{\"a\": 1}\n{\"b\": 2}\n"), 1);
}

#[test]
fn places_are_found_after_other_parts_were_read() {
    let text = "apiVersion: v1\nkind: A\nx: {z: 1}\n---\napiVersion: v1\nkind: B\nx: {z: 2}\n";
    let source = Arc::new(Source::new("a.yaml", text));
    let places: Vec<_> = parse(&source).documents.iter().map(Document::shared_place).collect();
    for (index, line) in [(0, 3), (1, 7), (0, 3)] {
        let location = places[index].locate(&Pointer::new("/x/z"));
        assert!(location.exact, "{location:?}");
        assert_eq!((location.caret.line, location.caret.column), (line, 8));
        assert_eq!(places[index].index(), index);
    }
}

#[test]
fn twenty_errors_end_a_source() {
    let source = Arc::new(Source::new("a.yaml", "a: [\n---\n".repeat(30)));
    assert_eq!(parse(&source).errors.len(), MAX_ERRORS);
}

#[test]
fn what_is_well_formed_ends_no_source() {
    let source = Arc::new(Source::new("a.yaml", format!("{}b: 1\n", "a: 1\na: 2\n---\n".repeat(30))));
    let found = part_by_part(&source);
    assert_eq!((found.len(), found.iter().filter(|found| found.is_ok()).count()), (31, 1));
}

/// Either would take minutes if its parts were multiplied.
#[test]
fn blanks_and_other_keys_are_not_read_again_for_each_document() {
    let object = "---\napiVersion: v1\nkind: A\n";
    let text = format!("{}{}", "\n".repeat(500_000), object.repeat(10_000));
    assert_eq!(parse(&Arc::new(Source::new("a.yaml", text))).documents.len(), 10_000);
    let items = "- {apiVersion: v1, kind: A}\n".repeat(10_000);
    let keys = (0..50_000).map(|number| format!("k{number}: 1")).collect::<Vec<_>>().join("\n");
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{items}{keys}");
    let documents = parse(&Arc::new(Source::new("a.yaml", text))).documents;
    assert_eq!(documents.len(), 10_000);
    for (index, document) in documents.iter().enumerate() {
        assert_eq!(document.locate(&Pointer::new("/kind")).caret.line, 4 + index);
    }
}

#[test]
fn items_behind_an_alias_have_the_place_of_what_they_stand_for() {
    let text = "x: &x\n  - {apiVersion: v1, kind: A}\n  - &b {apiVersion: v1, kind: B}\n\
                apiVersion: v1\nkind: List\nitems: *x\n---\n\
                y: &y {apiVersion: v1, kind: C}\napiVersion: v1\nkind: List\nitems:\n  - *y\n";
    let documents = parse(&Arc::new(Source::new("a.yaml", text))).documents;
    let lines =
        documents.iter().map(|it| (it.kind(), it.span().line, it.locate(&Pointer::new("/kind")).caret.line));
    assert_eq!(lines.collect::<Vec<_>>(), [("A", 2, 2), ("B", 3, 3), ("C", 12, 8)]);
}

#[test]
fn aliases_are_bounded_over_all_parts() {
    let document = format!("a: &a \"{}\"\nb: [{}]\n---\n", "x".repeat(1 << 20), "*a,".repeat(6));
    let source = Arc::new(Source::new("a.yaml", document.repeat(4)));
    let errors = parse(&source).errors;
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[test]
fn a_large_list_of_words_is_masked_like_a_small_one() {
    for filler in [1, 1 << 20] {
        let filler = "x".repeat(filler);
        let text = format!(r#"{{"items":["--token","hunter2-hunter2"],"filler":"{filler}"}}"#);
        let source = Arc::new(Source::new("a.json", text));
        assert!(!crate::mask::shown(&source).contains("hunter2"), "{} bytes", filler.len());
    }
}
