//! Findings as articles: one for each cause that several objects share, then one for each object. And the errors of inputs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::budget::{Fitting, OTHERS, PAGES, fitting};
use super::{excerpt, text, word};
use crate::report::page::{self, url};
use crate::report::{InputError, LocatedFinding, ObjectRef, Report, USED_BY, counted};
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::kind::NAMESPACE;
use memgate_primitives::fix::Fix;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{quoted_key, quoted_text, shown_name};

/// The most other places that are shown with a finding.
const MAX_RELATED: usize = 3;

/// The most namespaces and files that an owner names.
const MAX_OWNERS: usize = 3;

/// The least bytes for the objects of an article.
const MIN_LIST: usize = 2_000;

/// Where the findings are that the page leaves out.
const ELSEWHERE: &str = "-o json lists all of them";

/// What an attribute has in place of the policy for a rule of a platform, and of the namespace for an object without one.
pub(super) const NONE: &str = "-";

/// What one article is about.
struct Article<'f, 'r> {
    /// Its findings; of a shared cause one for each object.
    findings: Vec<&'f LocatedFinding<'r>>,
    /// The objects that share the cause; none for an article about one object.
    sharing: Vec<&'f LocatedFinding<'r>>,
    /// How many findings it stands for.
    count: usize,
}

/// Identifies an object. One without a name is known by its place in memory, what is about a file by the file.
type ObjectKey<'f> = (&'f ObjectRef, Option<*const ObjectRef>, Option<&'f str>);

fn key<'f>(located: &'f LocatedFinding<'_>) -> ObjectKey<'f> {
    let object_ref = located.object_ref;
    let nameless = object_ref.name.is_empty().then_some(std::ptr::from_ref(object_ref));
    if object_ref.kind.is_empty() {
        (object_ref, None, Some(located.location.file))
    } else {
        (object_ref, nameless, None)
    }
}

/// The articles of a page, by severity, and what they say of misspelt keys.
pub(super) struct Articles<'f, 'r> {
    by_severity: BTreeMap<Severity, Vec<Article<'f, 'r>>>,
    meant: Meant<'f>,
}

impl<'f, 'r> Articles<'f, 'r> {
    pub(super) fn of(report: &'f Report<'r>) -> Self {
        let severities = [Severity::Deny, Severity::Warn, Severity::Note];
        let by_severity = severities.map(|severity| (severity, articles(report, severity))).into();
        Self { by_severity, meant: Meant::of(report) }
    }
}

/// The articles of one severity: shared causes first, the one of most objects before the others, then objects. Of both,
/// those that the platforms themselves would find wrong stand before those that break a policy.
fn articles<'f, 'r>(report: &'f Report<'r>, severity: Severity) -> Vec<Article<'f, 'r>> {
    let (mut numbers, mut causes) = (BTreeMap::new(), Vec::<Vec<&LocatedFinding<'_>>>::new());
    for located in report.causes().filter(|it| it.finding.severity == severity) {
        let cause = (located.finding.code_name(), cause(&located.words()).to_owned());
        let number = *numbers.entry(cause).or_insert(causes.len());
        match causes.get_mut(number) {
            Some(of_cause) => of_cause.push(located),
            None => causes.push(vec![located]),
        }
    }
    let (mut shared, mut numbers, mut of_objects) =
        (Vec::new(), BTreeMap::new(), Vec::<Article<'_, '_>>::new());
    for findings in causes {
        let mut seen = BTreeSet::new();
        let all = findings.iter().flat_map(|it| std::iter::once(*it).chain(&it.in_others));
        let objects: Vec<_> = all.filter(|it| seen.insert(key(it))).collect();
        let count = findings.len();
        if objects.len() > 1 {
            shared.push(Article { findings, sharing: objects, count });
            continue;
        }
        for located in findings {
            let number = *numbers.entry(key(located)).or_insert(of_objects.len());
            match of_objects.get_mut(number) {
                Some(article) => {
                    article.findings.push(located);
                    article.count += 1;
                }
                None => of_objects.push(Article { findings: vec![located], sharing: Vec::new(), count: 1 }),
            }
        }
    }
    shared.sort_by_key(|article| (article.is_of_policies(), Reverse(article.sharing.len())));
    of_objects.sort_by_key(Article::is_of_policies);
    shared.extend(of_objects);
    shared
}

/// What the articles show of one policy in one namespace.
#[derive(Default)]
pub(super) struct Shown {
    /// How many there are: of a shared cause one for each object.
    pub(super) count: usize,
    pub(super) severities: BTreeSet<&'static str>,
    pub(super) platforms: BTreeSet<&'static str>,
}

/// What the articles show, by policy and namespace; without a policy the rules of the platforms.
pub(super) fn by_policy<'f>(articles: &Articles<'f, '_>) -> BTreeMap<(Option<&'f str>, &'f str), Shown> {
    let mut all = BTreeMap::<_, Shown>::new();
    for (severity, articles) in &articles.by_severity {
        for Article { findings, sharing, .. } in articles {
            for located in if sharing.is_empty() { findings } else { sharing } {
                let key = (policy(located.finding), own_namespace(located).unwrap_or_default());
                let shown = all.entry(key).or_default();
                shown.count += 1;
                shown.severities.insert(severity.name());
                shown.platforms.extend(located.object_ref.platforms(located.finding.code.name));
            }
        }
    }
    all
}

/// A message without the users of the object at its end.
fn cause(message: &str) -> &str {
    message.rsplit_once(USED_BY).map_or(message, |(cause, _)| cause)
}

/// The articles of one severity, as far as they fit into this share; `None` without any.
pub(super) fn of_severity(
    report: &Report<'_>,
    Articles { by_severity, meant }: &Articles<'_, '_>,
    severity: Severity,
    share: usize,
) -> Option<Markup> {
    let articles = by_severity.get(&severity).map(Vec::as_slice).unwrap_or_default();
    // Lists are cut where all of them do not fit.
    let mut shown = fitting(share, articles, |article| article.markup(share, meant));
    if shown.more > 0 {
        let lists = articles.iter().filter(|it| !it.sharing.is_empty()).count();
        let list_share = (share / 2 / lists.max(1)).max(MIN_LIST);
        shown = fitting(share, articles, |article| article.markup(list_share, meant));
    }
    let listed: usize = articles.iter().map(|it| it.count).sum();
    let more = listed - articles.iter().take(shown.count).map(|it| it.count).sum::<usize>();
    let shown = Fitting { more, ..shown };
    let uncounted = report.count(severity).saturating_sub(listed);
    if shown.is_empty() && uncounted == 0 {
        return None;
    }
    Some(html! {
        (shown.all())
        (shown.rest(ELSEWHERE))
        @if uncounted > 0 { p { (uncounted) " more of objects with very many findings are not listed." } }
    })
}

/// The namespaces of denied objects, those with most of them first.
pub(super) fn owners(report: &Report<'_>) -> Vec<String> {
    let mut objects: BTreeMap<&str, BTreeSet<ObjectKey<'_>>> = BTreeMap::new();
    let denials = report.causes().filter(|it| it.finding.severity == Severity::Deny);
    for located in denials.flat_map(|it| std::iter::once(it).chain(&it.in_others)) {
        if let Some(namespace) = own_namespace(located) {
            objects.entry(namespace).or_default().insert(key(located));
        }
    }
    let mut owners: Vec<_> = objects.into_iter().collect();
    owners.sort_by_key(|(_, objects)| Reverse(objects.len()));
    owners.into_iter().map(|(namespace, _)| text(&shown_name(namespace))).collect()
}

/// The first names of a list in words, and the number of the others.
pub(super) fn first_of(names: &[String], most: usize) -> String {
    names.iter().take(most).cloned().collect::<Vec<_>>().join(", ") + &more(names.len().saturating_sub(most))
}

/// The namespace of an object as policies match it: of a Namespace its own name.
fn own_namespace<'f>(located: &'f LocatedFinding<'_>) -> Option<&'f str> {
    let ObjectRef { kind, namespace, name, .. } = located.object_ref;
    let own: &str = if **kind == *NAMESPACE.kind { name } else { namespace };
    Some(own).filter(|it| !it.is_empty())
}

/// The namespaces of a finding.
fn all_namespaces<'f>(located: &'f LocatedFinding<'_>) -> impl Iterator<Item = &'f str> {
    own_namespace(located).into_iter().chain(located.namespaces.iter().copied())
}

/// The namespaces of a finding, as attributes have them.
pub(super) fn namespaces(located: &LocatedFinding<'_>) -> BTreeSet<String> {
    all_namespaces(located).map(|it| word(&shown_name(it))).collect()
}

/// The policy of a finding.
fn policy(finding: &Finding) -> Option<&str> {
    finding.policy.as_ref().map(|policy| &*policy.rule.policy)
}

/// A policy as attributes and addresses have it.
pub(super) fn policy_word(policy: Option<&str>) -> String {
    policy.map_or_else(|| NONE.to_owned(), word)
}

/// Words with blanks between them, as many as have room; and whether some are missing.
pub(super) fn words<W: AsRef<str>>(all: impl IntoIterator<Item = W>, room: usize) -> (String, bool) {
    let mut joined = String::new();
    for word in all {
        let word = word.as_ref();
        if joined.len() + word.len() >= room {
            return (joined, true);
        }
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    (joined, false)
}

/// The values that are likely meant, by object.
struct Meant<'f>(BTreeMap<ObjectKey<'f>, Vec<(String, String)>>);

impl<'f> Meant<'f> {
    /// Those of keys that are misspelt.
    fn of(report: &'f Report<'_>) -> Self {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for located in report.causes().filter(|it| it.finding.at_key) {
            if let Some((old, new)) = renamed(located.finding) {
                let words = format!("rename {old} to {}", quoted_text(&new));
                all.entry(key(located)).or_default().push((new, words));
            }
        }
        Self(all)
    }

    /// The correction of the same object that gives a finding the field that it misses.
    fn for_finding(&self, located: &LocatedFinding<'_>, message: &str) -> Option<String> {
        let is_named =
            |name: &str| message.split(|c: char| !c.is_alphanumeric() && c != '_').any(|it| it == name);
        let all = self.0.get(&key(located))?;
        all.iter().find(|(name, _)| is_named(name)).map(|(_, words)| words.clone())
    }
}

/// The key of a finding and the name that is likely meant.
fn renamed(finding: &Finding) -> Option<(String, String)> {
    let details = finding.details();
    let new = match &details.fix {
        Some(Fix::Rename(name)) => name,
        _ => details.meant.as_ref()?,
    };
    let old = finding.pointer.tokens().last()?;
    Some((quoted_key(&old), new.clone()))
}

/// The one thing to do about a finding: the correction, if it is known, else the advice, else what its cause asks for.
fn to_do(located: &LocatedFinding<'_>, meant: &Meant<'_>) -> String {
    let finding = located.finding;
    let details = finding.details();
    let key = || finding.pointer.tokens().last().map(|key| quoted_key(&key)).unwrap_or_default();
    let correction = match (&details.fix, &details.meant) {
        (Some(Fix::Unquote(_)), _) => Some("remove the quotes".to_owned()),
        (Some(Fix::RemoveRepeated), _) => Some("remove it, since it is repeated".to_owned()),
        (Some(Fix::Rename(new)), _) => Some(format!("rename {} to {}", key(), quoted_text(new))),
        (None, Some(new)) if finding.at_key => Some(format!("rename {} to {}", key(), quoted_text(new))),
        (Some(Fix::Text(value)), _) | (None, Some(value)) => Some(format!("write {}", quoted_text(value))),
        (None, None) => suggested(&details.message)
            .map(|value| format!("use {value}"))
            .or_else(|| meant.for_finding(located, &details.message))
            .or_else(|| finding.at_key.then(|| format!("remove {}, or correct its name", key()))),
    };
    let help = || details.help.as_deref().map(str::to_owned);
    text(&correction.or_else(help).unwrap_or_else(|| by_cause(finding)))
}

/// The value in quotes that a message suggests.
fn suggested(message: &str) -> Option<&str> {
    let (_, suggestion) = message.split_once("did you mean ")?;
    let end = suggestion.strip_prefix('"')?.find('"')?;
    suggestion.get(..end + 2)
}

/// What to do about a finding without advice.
fn by_cause(finding: &Finding) -> String {
    let field = match finding.pointer.field() {
        field if field.is_empty() => "the object".into(),
        field => field,
    };
    match finding.cause {
        Cause::Required => format!("set {field}"),
        Cause::NotFound => format!("correct {field}, or add the object that it names"),
        Cause::Conflict => format!("change {field}, or the field that it contradicts"),
        Cause::Duplicate => format!("remove one of the values of {field}"),
        Cause::Unavailable => format!("check {field}"),
        Cause::Invalid | Cause::NotSupported | Cause::TypeInvalid => format!("correct {field}"),
    }
}

impl Article<'_, '_> {
    /// Whether it has none of the rules of platforms.
    fn is_of_policies(&self) -> bool {
        self.findings.iter().all(|it| it.finding.policy.is_some())
    }

    /// All objects: those that share the cause, or the one.
    fn objects(&self) -> &[&LocatedFinding<'_>] {
        match self.sharing.as_slice() {
            [] => self.findings.get(..1).unwrap_or_default(),
            sharing => sharing,
        }
    }

    fn markup(&self, list_share: usize, meant: &Meant<'_>) -> Markup {
        let Some((first, others)) = self.findings.split_first() else { return html! {} };
        let objects = self.objects();
        let name = first.finding.severity.name();
        let all = || self.findings.iter().copied();
        let codes: BTreeSet<_> = all().map(|it| word(it.finding.code_name())).collect();
        let policies: BTreeSet<_> = all().map(|it| policy_word(policy(it.finding))).collect();
        let namespaces_of_all: BTreeSet<_> = objects.iter().flat_map(|it| namespaces(it)).collect();
        let platforms: BTreeSet<_> =
            objects.iter().flat_map(|it| it.object_ref.platforms(it.finding.code.name)).collect();
        let (in_namespaces, lacks_namespaces) = words(&namespaces_of_all, list_share / 4);
        let is_shared = !self.sharing.is_empty();
        let message = first.finding.message();
        // Each of them may have users of its own.
        let message = if is_shared { cause(&message) } else { &message };
        let list = is_shared.then(|| fitting(list_share / 2, objects, |it| sharing(it)));
        let lacks_objects = list.as_ref().is_some_and(|list| list.more > 0);
        html! {
            article class={ "finding is-" (name) } data-severity=(name) data-codes=(words(codes, usize::MAX).0)
                data-policy=(words(policies, usize::MAX).0) data-namespace=(in_namespaces)
                data-platform=(words(platforms, usize::MAX).0) data-objects=(objects.len())
                data-cut=[lacks_namespaces.then_some("")] data-cut-list=[lacks_objects.then_some("")] {
                h3 {
                    span class=(name) { (name) } " "
                    @if is_shared { (counted(objects.len(), things(objects))) } @else { (title(first)) }
                }
                (finding(first, message, meant, Some(owner(objects))))
                @for other in others.iter().filter(|_| !is_shared) {
                    (finding(other, &other.finding.message(), meant, None))
                }
                @if let Some(list) = list {
                    details {
                        summary { "All " (counted(objects.len(), things(objects))) }
                        ul { (list.all()) }
                        (list.rest(ELSEWHERE))
                    }
                }
            }
        }
    }
}

/// What the findings of an article are about, as a noun.
fn things(objects: &[&LocatedFinding<'_>]) -> &'static str {
    if objects.iter().all(|it| it.object_ref.kind.is_empty()) { "file" } else { "object" }
}

/// The name of what a finding is about.
fn title(located: &LocatedFinding<'_>) -> String {
    if located.object_ref.kind.is_empty() {
        text(located.location.file)
    } else {
        text(&located.object_ref.title())
    }
}

/// The namespaces and the files of objects.
fn owner(objects: &[&LocatedFinding<'_>]) -> Markup {
    let namespaces: BTreeSet<_> = objects.iter().flat_map(|it| all_namespaces(it)).collect();
    let namespaces: Vec<_> = namespaces.into_iter().map(|it| text(&shown_name(it))).collect();
    let files: BTreeSet<_> = objects.iter().map(|it| it.location.file).collect();
    let files: Vec<_> = files.into_iter().map(text).collect();
    html! {
        @match namespaces.as_slice() {
            [] => {},
            [one] => { "namespace " strong { (one) } ", " },
            several => { "namespaces " strong { (first_of(several, MAX_OWNERS)) } ", " },
        }
        @if files.len() == 1 { "file " } @else { (files.len()) " files: " }
        code { (first_of(&files, MAX_OWNERS)) }
    }
}

/// An object that shares a cause, and its line.
fn sharing(located: &LocatedFinding<'_>) -> Markup {
    let title = title(located);
    html! {
        li data-object=(title) {
            (title) " " code { (text(located.location.file)) ":" (located.location.line) }
        }
    }
}

/// A finding with its source, and what to do. The first one of an article names the owner.
fn finding(located: &LocatedFinding<'_>, message: &str, meant: &Meant<'_>, owner: Option<Markup>) -> Markup {
    let LocatedFinding { finding, location, sets, namespaces, related, .. } = located;
    // One that holds a credential is left out.
    let is_shown = |it: &String| {
        let is_page = it.starts_with("https://") || it.starts_with("http://");
        is_page && text(it) == *it
    };
    let address = url(finding).filter(is_shown);
    let at_admission = finding.policy.as_ref().and_then(|policy| policy.at_admission);
    let (to_do, is_first) = (to_do(located, meant), owner.is_some());
    let help = finding.help_text().map(|help| text(&help)).filter(|help| *help != to_do);
    html! {
        p {
            (text(message)) " "
            a class="code" href={ "#" (page_id(finding)) } { code { (text(finding.code_name())) } }
        }
        p class="quiet" {
            @if let Some(owner) = owner { span data-part="owner" { (owner) } "; at " }
            code data-part=[is_first.then_some("place")] { (text(location.file)) ":" (location.line) }
            @if let Some(file) = located.source_file { ", rendered from " code { (text(file)) } }
            @if !namespaces.is_empty() { ", in the namespaces " (text(&namespaces.join(", "))) }
            @if !sets.is_empty() { ", in the sets " (text(&sets.join(", "))) }
        }
        p { strong { "To do:" } " " span data-part=[is_first.then_some("do")] { (to_do) } }
        (excerpt::line(location))
        @for other in related.iter().take(MAX_RELATED) {
            p class="quiet" {
                code { (text(other.location.file)) ":" (other.location.line) } " " (text(&other.label))
            }
            (excerpt::line(&other.location))
        }
        @if let Some(words) = at_admission { p { "At admission: " (words.words()) } }
        @if let Some(help) = help { p class="quiet" { "Help: " (help) } }
        @if let Some(address) = &address { p { a href=(address) rel="noreferrer" { (address) } } }
    }
}

/// The id of the page of a finding's code, or of the type of its rule.
fn page_id(finding: &Finding) -> String {
    let rule = finding.policy.as_ref().map(|policy| policy.rule.type_name);
    rule.map_or_else(|| format!("code-{}", finding.code.name), |name| format!("rule-{name}"))
}

/// The pages of all codes in the report, each closed until it is looked at; `None` without findings.
pub(super) fn pages(report: &Report<'_>) -> Option<Markup> {
    let findings = report.causes().map(|located| located.finding);
    let pages: BTreeMap<String, &Finding> = findings.map(|finding| (page_id(finding), finding)).collect();
    let shown = fitting(PAGES, pages, page);
    (!shown.is_empty()).then(|| html! { (shown.all()) (shown.rest("memgate explain prints all of them")) })
}

fn page((id, finding): (String, &Finding)) -> Markup {
    let name = finding.policy.as_ref().map_or(finding.code.name, |policy| policy.rule.type_name);
    html! {
        details id=(id) {
            summary { code { (name) } }
            pre { (page::text(finding).trim_end()) }
        }
    }
}

/// The errors of inputs; `None` without any.
pub(super) fn errors(report: &Report<'_>) -> Option<Markup> {
    let shown = fitting(OTHERS, &report.errors, error);
    (!shown.is_empty()).then(|| html! { (shown.all()) (shown.rest(ELSEWHERE)) })
}

fn error(error: &InputError<'_>) -> Markup {
    html! {
        div class="finding is-deny" {
            h3 {
                span class="deny" { "error" }
                @if let Some(file) = error.file { " " (text(file)) }
                @if let Some((line, column)) = error.position { ":" (line) ":" (column) }
            }
            p { (text(&error.advice())) }
            @if let Some(location) = &error.location { (excerpt::line(location)) }
        }
    }
}
