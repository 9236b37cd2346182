//! Definitions whose rules in CEL try to take memory or time: each ends normally in little address space.

use std::process::Stdio;

use crate::run::Scratch;

/// The address space of a run, in KiB, with the stack of the reader of rules, which has 64 MiB.
const ADDRESS_SPACE_KIB: u64 = 300 << 10;

/// Rules of `spec`, which has `backend: in-context`; in each `§` is a text of 200 characters.
const RULES: &[&str] = &[
    // Precision.
    "'%.65535f'.format([0.0]).replace('0', '%.65535f'.format([0.0])).size() > 0",
    "'%.65535e'.format([0.0]).replace('0', '%.65535e'.format([0.0])).size() > 0",
    "'%.99999999999999999999f'.format([0.0]).size() > 0",
    "'%.4294967295f'.format([0.0]).size() > 0",
    "'%.60000f%.60000f%.60000f%.60000f'.format([1.5, 1.5, 1.5, 1.5]).split('0').size() > 0",
    "('%.6' + '5535f').format([0.0]).replace('0', '§').size() > 0",
    "self.backend.format([0.0]).size() > 0",
    "'%' .replace('%', '%.65535f').format([0.0]).size() > 0",
    "['%.65535f'].all(f, f.format([1.0]).replace('0', f.format([1.0])) != '')",
    "[1.0, 2.0, 3.0].map(x, '%.65535f'.format([x])).map(x, x.replace('0', x)).size() > 0",
    "'%.65535f'.format([1.0]).findAll('0').map(x, '%.65535f'.format([1.0])).size() > 0",
    "'%.30000f'.format([1.0]).split('0').map(x, '%.3000f'.format([1.0])).join('').size() > 0",
    // Texts made of texts.
    "'§'.replace('', '§').replace('', '§').replace('', '§').replace('', '§').size() > 0",
    "['§'].map(x, x.replace('', x)).map(x, x.replace('', x)).map(x, x.replace('', x)).size() > 0",
    "'§'.split('x').join('§').split('x').join('§').split('x').join('§').split('x').join('§').size() > 0",
    "'§'.findAll('x').join('§').findAll('x').join('§').findAll('x').join('§').findAll('x').join('§').size() > 0",
    "'§'.split('', -1).join('§') != ''",
    "'§'.split(''.trim()).map(x, '§'.split(''.trim())).map(x, '§'.split(''.trim())).size() > 0",
    "string(b'§§§').replace('', string(b'§§§')).replace('', string(b'§§§')).size() > 0",
    "string(b'§').replace('', string(b'§')).replace('', string(b'§')).replace('', string(b'§')).size() > 0",
    r"string(b'\xff\xff\xff\xff').replace('', '§').replace('', '§').replace('', '§').replace('', '§').size() > 0",
    "strings.quote(strings.quote(strings.quote(strings.quote('\"\"\"\"\"')))).replace('', '§').replace('', '§') != ''",
    "'§'.replace('x', '§', 100000).replace('x', '§', 100000).replace('x', '§', 100000) != ''",
    "self.backend.replace('', '§').replace('', self.backend.replace('', '§')).replace('', '§§§') != ''",
    // Texts of numbers and other values.
    "string(5e-324).replace('0', string(5e-324)).replace('0', string(5e-324)).replace('0', string(5e-324)) != ''",
    "[5e-324, 5e-324].map(x, string(x)).map(x, x.replace('0', x)).map(x, x.replace('0', x)).size() > 0",
    "'%s%f'.format([5e-324, 1e308]).replace('0', '%s%f'.format([5e-324, 1e308])).replace('0', '§') != ''",
    "'%b'.format([-1]).replace('1', '%b'.format([-1])).replace('1', '%b'.format([-1])).replace('1', '§') != ''",
    "'%x'.format(['§']).replace('7', '%x'.format(['§§'])).replace('7', '%x'.format(['§§'])) != ''",
    "[[['§']], [['§']], [[5e-324]]].join('§').replace('', '§').replace('', '§') != ''",
    "[quantity('1e2147483000'), quantity('1')].join('§').replace('', '§').replace('', '§') != ''",
    "'%s'.format([quantity('1e2147483000')]).replace('', '§').replace('', '§').replace('', '§') != ''",
    "quantity('1e2147483647').add(quantity('1e-2147483647')).asInteger() > 0",
    "quantity('1e2000000000').isGreaterThan(quantity('1'))",
    "quantity('9999999999999999999999999999999999999999999999').asInteger() > 0",
    "format.dns1123Subdomain().validate('§'.replace('x', '.').replace('.', '....')).value().join('§').replace('', '§') != ''",
    "format.dns1123Subdomain().validate('§'.replace('x', 'A.')).value().map(x, x.replace('', x)).size() > 0",
    // Lists.
    "[1].map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a]).size() > 0",
    "[[1]].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).size() > 0",
    "['§'].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).size() > 0",
    "[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, [1,2,3,4,5,6,7,8].map(d, [1,2,3,4,5,6,7,8].map(e, '§'))))).size() > 0",
    "[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, '§'.split('x')))).flatten(9).map(d, '§').size() > 0",
    "lists.range(100000000).size() > 0",
    "lists.range(100000).map(x, lists.range(100000)).size() > 0",
    "'§'.findAll('.').map(a, '§'.findAll('.')).map(a, a.map(b, '§'.findAll('.'))).size() > 0",
    "'§'.findAll('').map(a, '§'.findAll('')).flatten().map(a, '§').size() > 0",
    "'§'.split('x').map(a, '§'.split('x').filter(b, b == a)).map(a, a.map(b, '§')).size() > 0",
    "'§'.split('x').sort().reverse().distinct().map(a, '§'.split('x')).flatten().distinct().size() > 0",
    "[{'a': '§'}].map(a, {'a': a, 'b': a, 'c': a, 'd': a}).map(a, {'a': a, 'b': a, 'c': a, 'd': a}).map(a, {'a': a, 'b': a, 'c': a, 'd': a}).map(a, {'a': a, 'b': a, 'c': a, 'd': a}).map(a, {'a': a, 'b': a, 'c': a, 'd': a}).size() > 0",
    "'§'.findAll('.').map(a, {a: '§', 'b': '§'.findAll('.')}).map(a, {'a': a, 'b': a}).size() > 0",
    "[['§']].map(x, x.join('§')).map(x, [x, x, x, x].join(x)).map(x, [x, x, x, x].join(x)).map(x, [x, x, x, x].join(x)).map(x, [x, x, x, x].join(x)) != []",
    "{'a': '§'}.map(k, k.replace('', '§')).map(k, {k: k}).map(m, m.map(k, k.replace('', k))).size() > 0",
    "[?self.?backend, ?self.?backend].map(a, a.replace('', '§')).map(a, a.replace('', a)).map(a, a.replace('', a)) != []",
    "sets.contains('§'.findAll('.').map(a, '§'), '§'.findAll('.').map(a, '§')) && sets.equivalent('§'.findAll('.').map(a, '§'.findAll('.')), [])",
    // Time.
    "'§'.findAll('.').all(a, '§'.findAll('.').all(b, '§'.findAll('.').all(c, '§'.findAll('.').all(d, a + b + c != d))))",
    "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, [1,2,3,4,5,6,7,8,9].all(h, true))))))))",
    "'§'.matches('(x+x+)+y') || '§'.matches('((((x*)*)*)*)*y')",
    "'§'.matches('(x{1,1000}){1,1000}')",
    "'§'.matches('(((((x{100}){100}){100}){100}){100})')",
    "'§'.replace('', '§').matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)y')",
    "'§'.indexOf('§') + '§'.replace('', '§').indexOf('§'.replace('', '§') + 'y') > 0",
    "duration('999999999999999999h') > duration('1s') || timestamp('9999-12-31T23:59:59Z') + duration('9999999h') > timestamp('0001-01-01T00:00:00Z')",
    // Depth, and what cannot be read.
    "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((true))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] == []",
    "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!true",
    "! ! ! !-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(-(1))))))))))))))))))))))))))) == 1",
    "true?true?true?true?true?true?true?true?true?true?true?true?true?true?true?true:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1",
    "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{",
    "self.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
    "self.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.?a.hasValue()",
];

/// A definition with this rule, whose message an expression makes, and an object of it.
fn definition(rule: &str, message: &str) -> String {
    let quoted = |text: &str| serde_json::to_string(&text.replace('§', &"x".repeat(200))).expect("JSON");
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: arkmemories.arkonis.dev}}
spec:
  group: arkonis.dev
  names: {{kind: ArkMemory, plural: arkmemories}}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {{backend: {{type: string}}}}
            x-kubernetes-validations: [{{rule: {}, messageExpression: {}}}]
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {{name: notes}}
spec: {{backend: in-context}}
",
        quoted(rule),
        quoted(message)
    )
}

/// The faults of a run in so much address space.
fn fault(words: &str, text: &str) -> Option<String> {
    let scratch = Scratch::with(&[("a.yaml", text)]);
    let limited = format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" {words}");
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_memgate")]).env_clear().current_dir(scratch.path());
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let written = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let ends_well = matches!(output.status.code(), Some(0 | 1)) && !written.contains("panicked");
    (!ends_well).then(|| format!("{words}: {:?}\n{written}", output.status))
}

#[test]
fn no_rule_takes_much_memory() {
    for rule in RULES {
        for (rule, message) in [(*rule, ""), ("false", &format!("string(({rule}) ? 'a' : 'b')"))] {
            let text = definition(rule, message);
            assert!(rule.len() < 2_000, "{rule}");
            assert_eq!(fault("check a.yaml --strict", &text), None, "{rule} {message}");
        }
    }
}

#[test]
fn no_command_takes_much_memory_for_a_rule() {
    for rule in RULES.iter().step_by(9) {
        for words in ["mutate a.yaml", "view a.yaml", "map a.yaml", "check a.yaml -o json"] {
            assert_eq!(fault(words, &definition(rule, "")), None, "{rule}");
        }
    }
}
