//! Finds the text from which a value of an object comes that kustomize printed: the base file, the patch, the replacement or the
//! kustomization file that sets it.

mod read;
mod sought;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::kustomization::{items, text, texts};
use crate::origins::RenderedObject;
use crate::origins::files::Files;
use crate::origins::overlay::{Layer, Made, Maker, Objects, Overlays, Patch, Piece, Target};
use crate::origins::spot::Spot;
use memgate_manifest::document::Document;
use memgate_manifest::source::Span;
use memgate_model::finding::{Cause, Finding};
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{plain, quoted};
use memgate_primitives::pointer::{Pointer, list_index};
use sought::{Behind, Reached, Sought, field_path, walk};

/// How many replacements may copy a value from each other.
const MAX_COPIES: usize = 8;
/// Among so many objects of a name one is sought that kustomize has renamed.
const MAX_MEANT: usize = 256;
/// Of an object in a patch so many fields are looked at for one that is left out.
const MOST_FIELDS: usize = 256;
/// The number of characters of the hash behind the name of a generated object, with the dash.
const HASH: usize = 11;

/// The spot of a field of an object, or of its nearest parent that exists; `None` if that cannot be told.
pub(crate) fn spot(object: RenderedObject<'_>, pointer: &Pointer, files: &mut Files) -> Option<Spot> {
    spot_in(&object.unit.directory, object.value, pointer, files)
}

/// The same for an object that the kustomization of a directory makes.
fn spot_in(directory: &Path, object: &Value, pointer: &Pointer, files: &mut Files) -> Option<Spot> {
    let objects = read::objects(directory, files);
    let made = made(&objects, object)?;
    let mut search = Search { objects: &objects, overlays: &mut files.overlays };
    search.find(&made, &Sought::of(object, pointer), MAX_COPIES).map(|(spot, _)| spot)
}

/// The object that was rendered, before that.
fn made(objects: &Objects, value: &Value) -> Option<Arc<Made>> {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let name = match text("/metadata/name") {
        "" => text("/metadata/generateName"),
        name => name,
    };
    let named = |name: &str| objects.by_name.get(&(kind.to_owned(), name.to_owned()));
    let hashed = || name.len().checked_sub(HASH).and_then(|end| name.get(..end)).and_then(named);
    let all = named(name).or_else(hashed)?;
    let of_group = || all.iter().filter(|made| made.group == group);
    let found = of_group().find(|made| made.namespace == namespace).or_else(|| of_group().next());
    found.or_else(|| all.first()).cloned()
}

/// What to say and to do about a name in a rendered object that leads to nothing, since kustomize has changed the name of the
/// object that is meant.
pub(crate) fn renamed(
    object: RenderedObject<'_>,
    finding: &Finding,
    pointer: &Pointer,
    files: &mut Files,
) -> Option<(String, String)> {
    let named = object.value.pointer(pointer.as_str()).and_then(Value::as_str);
    let named = named.filter(|_| finding.cause == Cause::NotFound && finding.missing.is_empty());
    if named.is_none() && finding.missing.is_empty() {
        return None;
    }
    let objects = read::objects(&object.unit.directory, files);
    let missing = finding.missing.iter().map(|it| objects.named(it.kind.kind, &it.name));
    let of_kinds = named.into_iter().flat_map(|name| objects.of_any_kind(name));
    let meant = missing.flatten().chain(of_kinds).take(MAX_MEANT);
    let before = finding.message();
    let message = ["; did you mean", " (exists in"]
        .iter()
        .fold(&*before, |text, mark| text.split_once(mark).map_or(text, |(start, _)| start));
    let name = named.or_else(|| Some(finding.missing.first()?.name.as_str()))?;
    let (cause, help) = meant.into_iter().find_map(|made| made.cause_of_rename(name))?;
    Some((format!("{message}; {cause}"), help))
}

impl Made {
    /// What kustomize has made of a name, by which field, and what to do.
    fn cause_of_rename(&self, name: &str) -> Option<(String, String)> {
        let configure = "write the output of `memgate schema kustomize` to a file, and list the file under \
                         `configurations:` of the kustomization, so that kustomize changes the name here too";
        let sets = |field: &str| {
            let has = |made: &Self| match &made.by {
                Maker::Layer(layer) => {
                    text(layer.kustomization.value(), field).is_some_and(|it| !it.is_empty())
                }
                _ => false,
            };
            self.steps().any(has)
        };
        if let Some(field) = self.steps().find_map(Self::generator) {
            let help = format!("{configure}, or set `disableNameSuffixHash: true` in its `options`");
            return Some((format!("kustomize puts a hash behind this name ({field})"), help));
        }
        let fields: Vec<&str> =
            ["namePrefix", "nameSuffix"].into_iter().filter(|field| sets(field)).collect();
        let fields = if fields.is_empty() { "a patch".to_owned() } else { fields.join(", ") };
        let cause = format!("kustomize made {} of it ({fields})", quoted(&self.name));
        (self.name != name).then(|| (cause, configure.to_owned()))
    }

    /// Whether kustomize merges the lists in it by keys: it does in kinds of Kubernetes itself. In others a list replaces
    /// the one before.
    fn has_merged_lists(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }

    /// The field of the generator that makes it, if one does.
    fn generator(&self) -> Option<&'static str> {
        match (&self.by, &*self.kind) {
            (Maker::Generator(..), "Secret") => Some("secretGenerator"),
            (Maker::Generator(..), _) => Some("configMapGenerator"),
            _ => None,
        }
    }
}

/// What the kustomization of a directory makes.
pub(crate) fn objects_of(directory: &Path, files: &mut Files) -> Arc<Objects> {
    read::objects(directory, files)
}

/// The file of the kustomization on the way of an object that may change a field of it, or one around it.
pub(crate) fn changer(made: &Made, pointer: &Pointer, overlays: &mut Overlays) -> Option<String> {
    let Some(Made { by: Maker::Document(document), .. }) = made.steps().last() else { return None };
    let sought = Sought::of(document.value(), pointer);
    let may_change = |layer: &Layer, step: &Made, overlays: &mut Overlays| {
        let writes = |(piece, at): &(Piece, Pointer)| {
            let replacement = piece.document.value().pointer(at.as_str());
            let mut targets = replacement.into_iter().flat_map(|it| items(it, "targets"));
            targets.any(|target| target_path(target, step, &sought).is_some())
        };
        if layer.is_open || layer.replacements.iter().any(writes) {
            return true;
        }
        let Some(before) = step.before.as_deref() else { return false };
        let patches = layer.patches_for(before, &mut overlays.comparisons);
        patches.into_iter().any(|patch| patch.may_change(pointer, before.has_merged_lists()))
    };
    made.steps().find_map(|step| match &step.by {
        // Where too much was compared already, it is not known.
        Maker::Layer(layer) if overlays.comparisons == 0 || may_change(layer, step, overlays) => {
            Some(plain(layer.kustomization.source().name()).into_owned())
        }
        _ => None,
    })
}

/// The file of the patch that removes an object on its way.
pub(crate) fn remover(made: &Made, overlays: &mut Overlays) -> Option<String> {
    made.steps().find_map(|step| {
        let (Maker::Layer(layer), Some(before)) = (&step.by, &step.before) else { return None };
        let patches =
            if layer.removes { layer.patches_for(before, &mut overlays.comparisons) } else { Vec::new() };
        let patch = patches.into_iter().find(|patch| patch.removes)?;
        Some(plain(patch.piece.field(Pointer::root(), None).source().name()).into_owned())
    })
}

impl Patch {
    /// Whether it may change a field of its object. Elements of lists are not told apart.
    fn may_change(&self, pointer: &Pointer, merges_lists: bool) -> bool {
        let tokens: Vec<_> = pointer.tokens().collect();
        let Value::Array(operations) = self.piece.document.value() else {
            return reaches(self.piece.document.value(), &tokens, merges_lists);
        };
        let is_near = |path: &str| {
            let is_index = |token: &str| token == "-" || list_index(token).is_some();
            let is_same = |(one, other): (&str, &str)| one == other || is_index(one) && is_index(other);
            let path = Pointer::new(path);
            path.tokens().zip(&tokens).all(|(one, other)| is_same((&one, other)))
        };
        operations.iter().any(|operation| {
            let is_change = text(operation, "op").is_some_and(|op| op != "test");
            let mut paths = ["path", "from"].into_iter().filter_map(|field| text(operation, field));
            is_change && paths.any(|path| is_near(&path))
        })
    }
}

/// Whether a merged patch says anything of a field, or of all that is around it.
fn reaches(patch: &Value, tokens: &[impl AsRef<str>], merges_lists: bool) -> bool {
    let (mut open, mut rest) = (vec![patch], tokens.iter());
    loop {
        if open.iter().any(|here| here.is_null() || here.get("$patch").is_some()) {
            return true;
        }
        let Some(token) = rest.next() else { return !open.is_empty() };
        if open.iter().any(|here| here.is_array() && !merges_lists) {
            return true;
        }
        let mut below = Vec::new();
        for here in open {
            match here {
                Value::Array(elements) => below.extend(elements),
                other => below.extend(other.get(token.as_ref())),
            }
        }
        open = below;
    }
}

struct Search<'s> {
    objects: &'s Objects,
    overlays: &'s mut Overlays,
}

/// What was found so far, if it is not the value itself.
#[derive(Default)]
struct Found {
    /// The place of a patch that leaves out a field of the object.
    remover: Option<Spot>,
    /// The place of a list or an object.
    holder: Option<Spot>,
    /// The place of another value.
    other: Option<Spot>,
    /// The nearest parent, and how many steps lead to it.
    parent: Option<(usize, Spot)>,
}

impl Search<'_> {
    /// Whether a field may be compared with so many more operations or entries of a kustomization.
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.overlays.steps.checked_sub(steps);
        self.overlays.steps = left.unwrap_or_default();
        left.is_some()
    }

    /// The place of a field, and whether its value is there: the last step that sets it counts. The recursion is bounded:
    /// `copies` replacements at most.
    fn find(&mut self, made: &Arc<Made>, sought: &Sought<'_>, copies: usize) -> Option<(Spot, bool)> {
        let mut found = Found::default();
        for step in made.steps() {
            let spot = match &step.by {
                Maker::Document(document) => {
                    let piece = Piece { document: Arc::clone(document), whole: None };
                    found.offer(&piece, sought, 0, walk(document.value(), &Pointer::root(), &sought.steps))
                }
                Maker::Generator(layer, at) => found.generated(layer, at, sought),
                Maker::Layer(_) if sought.steps.is_empty() => None,
                Maker::Layer(layer) => self.layer(layer, step, sought, &mut found, copies),
            };
            if let Some(spot) = spot {
                return Some((spot, true));
            }
        }
        let Found { remover, holder, other, parent } = found;
        Some((remover.or(holder).or(other).or_else(|| parent.map(|(_, spot)| spot))?, false))
    }

    /// The place of a field in a kustomization and what it reads, if that sets it.
    fn layer(
        &mut self,
        layer: &Layer,
        object: &Made,
        sought: &Sought<'_>,
        found: &mut Found,
        copies: usize,
    ) -> Option<Spot> {
        if !self.spend(layer.entries) {
            return None;
        }
        let replacements = layer.replacements.iter().rev().filter(|_| copies > 0);
        for (piece, at) in replacements {
            if let Some(spot) = self.replacement(piece, at, object, sought, copies) {
                return Some(spot);
            }
        }
        if let Some(at) = set_by(layer, object, sought) {
            return Some(field(&layer.kustomization, at, sought));
        }
        let before = object.before.as_deref()?;
        let patches = layer.patches_for(before, &mut self.overlays.comparisons);
        for patch in patches.into_iter().rev() {
            let operations = patch.piece.document.value().as_array().map_or(1, Vec::len);
            if let Some(spot) = self.spend(operations).then(|| found.patch(patch, before, sought)).flatten() {
                return Some(spot);
            }
        }
        merged(layer, object).into_iter().rev().find_map(|at| found.generated(layer, &at, sought))
    }

    /// The place of the value that a replacement writes into the field: where its source has it, else the replacement.
    fn replacement(
        &mut self,
        piece: &Piece,
        at: &Pointer,
        object: &Made,
        sought: &Sought<'_>,
        copies: usize,
    ) -> Option<Spot> {
        let replacement = piece.document.value().pointer(at.as_str())?;
        let (path, is_part) =
            items(replacement, "targets").find_map(|target| target_path(target, object, sought))?;
        let here = |at| Spot::Text {
            source: Arc::clone(piece.document.source()),
            span: caret(&piece.document, &at),
        };
        if replacement.get("sourceValue").is_some() {
            return Some(here(at.key("sourceValue")));
        }
        let source = replacement.get("source").unwrap_or(&Value::Null);
        let [kind, name] = ["kind", "name"].map(|field| text(source, field).unwrap_or_default());
        let target = Target::of(source);
        let all = self.objects.named(&kind, &name);
        let origin = all.filter(|made| target.fits(made)).max_by_key(|made| made.steps().count()).cloned();
        let is_part = is_part || source.get("options").is_some() || sought.is_part;
        let field = text(source, "fieldPath").unwrap_or_else(|| "metadata.name".to_owned());
        let mut below = Sought::at_path(&field, sought.value, is_part);
        below.steps.extend(sought.steps.get(path..).unwrap_or_default().iter().cloned());
        let origin = origin.and_then(|origin| self.find(&origin, &below, copies - 1));
        let origin = origin.filter(|(_, is_value)| *is_value).map(|(spot, _)| spot.as_text());
        Some(origin.unwrap_or_else(|| here(at.clone())))
    }
}

/// The number of steps to the field into which a replacement writes, if the sought one is it or below it; and whether it
/// writes only a part of the text.
fn target_path(target: &Value, object: &Made, sought: &Sought<'_>) -> Option<(usize, bool)> {
    let fits = |selector: &Value| Target::of(selector).fits(object);
    if !target.get("select").is_some_and(fits) || items(target, "reject").any(fits) {
        return None;
    }
    let is_part = target.pointer("/options/delimiter").is_some();
    let leads_here = |path: &str| {
        let tokens = field_path(path);
        let leads = tokens.len() <= sought.steps.len()
            && tokens.iter().zip(&sought.steps).all(|(token, step)| step.is_in_path(token));
        leads.then_some((tokens.len(), is_part))
    };
    let mut paths: Vec<String> = texts(target, "fieldPaths").collect();
    if paths.is_empty() {
        paths.push("metadata.name".to_owned());
    }
    paths.iter().find_map(|path| leads_here(path))
}

/// The entry of a kustomization that sets a field without a patch: the namespace, a label, an annotation, the number of
/// replicas, an image.
fn set_by(layer: &Layer, object: &Made, sought: &Sought<'_>) -> Option<Pointer> {
    let kustomization = layer.kustomization.value();
    let value = sought.value?;
    let tokens: Vec<&str> = sought.steps.iter().map(sought::Step::key).collect();
    if let (["metadata", "name"], Some(before)) = (tokens.as_slice(), &object.before) {
        // A name that was right before.
        let is_broken = is_dns_subdomain(&before.name) && !is_dns_subdomain(&object.name);
        let prefixed = text(kustomization, "namePrefix").map(|prefix| prefix + &before.name);
        let is_of_prefix = prefixed.is_some_and(|name| !is_dns_subdomain(&name));
        let field = if is_of_prefix { "/namePrefix" } else { "/nameSuffix" };
        return is_broken
            .then(|| Pointer::new(field))
            .filter(|at| kustomization.pointer(at.as_str()).is_some());
    }
    let holds = |at: &Pointer| kustomization.pointer(at.as_str()).is_some_and(|it| is_alike(it, value));
    let at = match tokens.as_slice() {
        ["metadata", "namespace"] => Pointer::new("/namespace"),
        ["spec", "replicas"] => {
            let is_own =
                |entry: &Value| text(entry, "name").is_some_and(|name| object.names().contains(&*name));
            let number = items(kustomization, "replicas").position(is_own)?;
            Pointer::new("/replicas").index(number).key("count")
        }
        [.., "image"] => return image(kustomization, value.as_str()?),
        [.., "annotations", key] => Pointer::new("/commonAnnotations").key(key),
        [.., "labels" | "matchLabels" | "selector", key] => {
            let pairs = |number: usize| Pointer::new(format!("/labels/{number}/pairs")).key(key);
            let all = (0..items(kustomization, "labels").count()).rev().map(pairs);
            return all.chain([Pointer::new("/commonLabels").key(key)]).find(holds);
        }
        _ => return None,
    };
    holds(&at).then_some(at)
}

/// The part of an entry of images that made an image what it is.
fn image(kustomization: &Value, image: &str) -> Option<Pointer> {
    let entries: Vec<&Value> = items(kustomization, "images").collect();
    let made = |entry: &Value| {
        let name = text(entry, "newName").or_else(|| text(entry, "name"))?;
        let rest = image.strip_prefix(&name)?;
        let ends_with = |field, sign| text(entry, field).is_some_and(|it| rest == format!("{sign}{it}"));
        let is_named = (rest.is_empty() || rest.starts_with([':', '@'])).then_some("newName");
        let part = if ends_with("digest", "@") {
            Some("digest")
        } else if ends_with("newTag", ":") {
            Some("newTag")
        } else {
            is_named.filter(|field| entry.get(field).is_some())
        };
        part.map(str::to_owned)
    };
    let (number, part) =
        entries.iter().enumerate().rev().find_map(|(number, entry)| Some((number, made(entry)?)))?;
    Some(Pointer::new("/images").index(number).key(&part))
}

/// The generators of a kustomization that change an object which one before it made.
fn merged(layer: &Layer, object: &Made) -> Vec<Pointer> {
    let field = match object.kind.as_str() {
        "ConfigMap" => "configMapGenerator",
        "Secret" => "secretGenerator",
        _ => return Vec::new(),
    };
    let names = object.names();
    let merges = |generator: &Value| {
        text(generator, "behavior").is_some_and(|it| it != "create")
            && text(generator, "name").is_some_and(|name| names.contains(&*name))
    };
    let all = items(layer.kustomization.value(), field).enumerate();
    all.filter(|(_, it)| merges(it)).map(|(number, _)| Pointer::root().key(field).index(number)).collect()
}

impl Found {
    /// Takes what steps lead to in a text, behind `done` of them. Returns the spot if it is the sought value.
    fn offer(
        &mut self,
        piece: &Piece,
        sought: &Sought<'_>,
        done: usize,
        reached: Reached<'_>,
    ) -> Option<Spot> {
        let depth = done + reached.depth;
        let spot = piece.field(reached.pointer, None);
        match (reached.value, sought.value) {
            (Some(own), Some(value)) if is_alike(own, value) => return Some(spot),
            (Some(Value::Null), None) => return Some(spot.as_text()),
            (Some(own), Some(value)) if sought.is_copied && is_same_text(own, value) => {
                return Some(spot.as_text());
            }
            (Some(Value::String(own)), Some(Value::String(value)))
                if value.contains(own.as_str()) && !own.is_empty()
                    || sought.is_part && own.contains(value.as_str()) =>
            {
                return Some(spot.as_text());
            }
            (Some(own), Some(value)) if is_same_collection(own, value) => self.holder = Some(spot),
            (Some(_), _) => {
                self.other.get_or_insert_with(|| spot.as_text());
            }
            (None, _) if self.parent.as_ref().is_none_or(|(known, _)| depth >= *known) => {
                self.parent = Some((depth, spot));
            }
            (None, _) => {}
        }
        None
    }

    /// Takes a patch for an object.
    fn patch(&mut self, patch: &Patch, object: &Made, sought: &Sought<'_>) -> Option<Spot> {
        let piece = &patch.piece;
        let value = piece.document.value();
        let Value::Array(operations) = value else {
            let reached = walk(value, &Pointer::root(), &sought.steps);
            return match end(value, &sought.steps, object) {
                Some(End::Removed(at)) if sought.value.is_none() => Some(piece.field(at, None).as_text()),
                Some(End::Replaced) => Some(piece.replaced(reached, sought, None)),
                _ => {
                    self.removes(piece, || removed_in(reached.value?, &reached.pointer), sought);
                    self.offer(piece, sought, 0, reached)
                }
            };
        };
        let all = operations.iter().enumerate().rev();
        all.into_iter().find_map(|(number, operation)| {
            self.operation(piece, &Pointer::root().index(number), operation, sought)
        })
    }

    /// Takes an operation of a JSON patch. What it sets or removes is not what it was before, nor is all below that.
    fn operation(
        &mut self,
        piece: &Piece,
        at: &Pointer,
        operation: &Value,
        sought: &Sought<'_>,
    ) -> Option<Spot> {
        let name = text(operation, "op")?;
        let set = operation.get("value").filter(|_| ["add", "replace"].contains(&&*name));
        let removing = match &*name {
            "remove" => Some("path"),
            "move" => Some("from"),
            _ => None,
        };
        let removed = removing.and_then(|field| Some((at.key(field), text(operation, field)?)));
        if let Some((at, path)) = removed {
            match sought.behind(&Pointer::new(path), None) {
                Some(Behind::Field(_)) if sought.value.is_none() => {
                    return Some(piece.field(at, None).as_text());
                }
                Some(Behind::Parent) => self.removes(piece, || Some(at), sought),
                _ => {}
            }
        }
        let Behind::Field(rest) = sought.behind(&Pointer::new(text(operation, "path")?), set)? else {
            return None;
        };
        let key = at.key("path");
        if ["move", "copy"].contains(&&*name) {
            return Some(piece.field(key, None).as_text());
        }
        let key = rest.is_empty().then_some(key);
        Some(piece.replaced(walk(set?, &at.key("value"), rest), sought, key))
    }

    /// Takes that a patch leaves a field of the sought object out, at a place in it.
    fn removes(&mut self, piece: &Piece, at: impl FnOnce() -> Option<Pointer>, sought: &Sought<'_>) {
        if self.remover.is_none() && sought.value.is_some_and(Value::is_object) {
            self.remover = at().map(|at| piece.field(at, None).as_text());
        }
    }

    /// Takes what a generator makes.
    fn generated(&mut self, layer: &Layer, at: &Pointer, sought: &Sought<'_>) -> Option<Spot> {
        let generator = layer.kustomization.value().pointer(at.as_str())?;
        let tokens: Vec<&str> = sought.steps.iter().map(sought::Step::key).collect();
        let element = |field: &str, fits: &dyn Fn(&str) -> bool| {
            let number = items(generator, field).position(|it| it.as_str().is_some_and(fits))?;
            Some(at.key(field).index(number))
        };
        let place = match tokens.as_slice() {
            ["metadata", field @ ("name" | "namespace")] => generator.get(field).map(|_| at.key(field)),
            ["metadata", field @ ("labels" | "annotations"), key] => {
                let within = at.key("options").key(field).key(key);
                layer.kustomization.value().pointer(within.as_str()).map(|_| within)
            }
            ["data" | "stringData" | "binaryData", key] => {
                let is_literal = |it: &str| it.split_once('=').is_some_and(|(own, _)| own == *key);
                let is_file = |it: &str| is_literal(it) || it.rsplit('/').next() == Some(key);
                let found = element("literals", &is_literal).or_else(|| element("files", &is_file));
                found.or_else(|| element("envs", &|_| sought.value.is_some()))
            }
            _ => None,
        };
        let spot = |at: &Pointer| {
            let source = Arc::clone(layer.kustomization.source());
            Spot::Text { source, span: caret(&layer.kustomization, at) }
        };
        if self.parent.is_none() {
            self.parent = Some((0, spot(at)));
        }
        place.map(|at| spot(&at))
    }
}

impl Piece {
    /// A field of it, and where its key stands as a value.
    fn field(&self, pointer: Pointer, key: Option<Pointer>) -> Spot {
        match &self.whole {
            Some((document, at)) => {
                Spot::Text { source: Arc::clone(document.source()), span: caret(document, at) }
            }
            None => Spot::Field { document: self.document.shared_place(), pointer, key },
        }
    }

    /// The place of a value in a text which replaces all that was there before.
    fn replaced(&self, reached: Reached<'_>, sought: &Sought<'_>, key: Option<Pointer>) -> Spot {
        let spot = self.field(reached.pointer, key);
        match (reached.value, sought.value) {
            (None, _) => spot,
            (Some(own), Some(value)) if is_alike(own, value) || is_same_collection(own, value) => spot,
            (Some(_), _) => spot.as_text(),
        }
    }
}

/// What a merged patch does with all that was before at a field, or at one around it.
enum End {
    /// It removes it, at this place.
    Removed(Pointer),
    /// What it has there is all.
    Replaced,
}

/// Follows the steps to a field of an object in a merged patch, as far as that has them.
fn end(patch: &Value, steps: &[sought::Step<'_>], object: &Made) -> Option<End> {
    let (mut here, mut at, mut end, mut steps) = (patch, Pointer::root(), None, steps.iter());
    loop {
        match here.get("$patch").and_then(Value::as_str) {
            Some("delete") => return Some(End::Removed(at.key("$patch"))),
            Some("replace") => end = Some(End::Replaced),
            _ if here.is_null() => return Some(End::Removed(at)),
            _ => {}
        }
        let Some((token, below)) = steps.next().and_then(|step| step.within(here)) else { return end };
        if here.is_array() && !object.has_merged_lists() {
            end = Some(End::Replaced);
        }
        (here, at) = (below, at.key(&token));
    }
}

/// The first field of an object in a merged patch that leaves one out.
fn removed_in(object: &Value, at: &Pointer) -> Option<Pointer> {
    let is_removed = |it: &Value| it.is_null() || it.get("$patch").is_some_and(|it| it == "delete");
    let mut fields = object.as_object()?.iter().take(MOST_FIELDS);
    fields.find(|(_, it)| is_removed(it)).map(|(field, _)| at.key(field))
}

/// A field of a kustomization that has the sought value.
fn field(document: &Document, at: Pointer, sought: &Sought<'_>) -> Spot {
    let is_same = document.value().pointer(at.as_str()) == sought.value;
    let spot = Spot::Field { document: document.shared_place(), pointer: at, key: None };
    if is_same { spot } else { spot.as_text() }
}

impl Spot {
    /// The same as a stretch of text, in which a fix of the field would be wrong.
    fn as_text(&self) -> Self {
        Self::Text { source: Arc::clone(self.source()), span: self.caret() }
    }
}

fn caret(document: &Document, at: &Pointer) -> Span {
    document.locate(at).carets(false).0
}

/// Whether two scalars are the same but for quotes.
fn is_same_text(one: &Value, other: &Value) -> bool {
    let text = |it: &Value| match it {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(it.to_string()),
        _ => None,
    };
    text(one).is_some_and(|one| text(other) == Some(one))
}

fn is_same_collection(one: &Value, other: &Value) -> bool {
    one.is_object() && other.is_object() || one.is_array() && other.is_array()
}

/// Whether two values are the same, however a number is written.
fn is_alike(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}
