//! The part of a view that the embedder decides: where the text of memories goes, and with which credentials.

use crate::endpoint_view;
use crate::url::inline_credential;
use memgate_model::memory_view::{
    EndpointSource, EndpointView, InlineView, MemoryView, SecretView, ViewValue, Why, qualified,
};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::add_reference;
use crate::kagent::api::Line;
use crate::kagent::embedder::{Destination, Embedder};

/// The paths of a view, besides the endpoint, whose values are unknown without the embedder.
const PATHS: [&str; 4] = ["provider", "embedding", "secrets", "inline"];

/// Adds the embedder of this name, which this field contains.
pub(super) fn add(
    view: &mut MemoryView,
    line: Line,
    (name, field): (&str, Pointer),
    state: &mut StateReader<'_>,
) {
    let kind = line.model_config();
    let Lookup::Found(found) = add_reference(view, kind, (name, field.clone()), state) else {
        let title = format!("{} {}", kind.kind, quoted(&qualified(&view.namespace, name)));
        let why = Why::Object(title);
        for path in PATHS {
            view.set_unknown(path, why.clone());
        }
        view.endpoint = Some(EndpointView::unknown(EndpointSource::Derived, why).of(name));
        return;
    };
    let embedder = Embedder::new(line, found.tree());
    view.set("embedding", Some(ViewValue::Object));
    view.set("embedding.model", embedder.model());
    view.set("embedding.provider", Some(embedder.provider()));
    view.set("provider", Some(embedder.provider()));
    add_endpoint(view, &embedder, &field, state);
    add_credentials(view, found.tree(), &field);
}

fn add_endpoint(
    view: &mut MemoryView,
    embedder: &Embedder<'_>,
    field: &Pointer,
    state: &mut StateReader<'_>,
) {
    let (source, text) = match embedder.endpoint() {
        None => return,
        Some(Destination::Derived(url)) => (EndpointSource::Derived, url),
        Some(Destination::Written(_, text)) => {
            view.inline.extend(inline_credential(text, field.clone()));
            // kagent itself adds the scheme for Ollama.
            let lacks_scheme = embedder.provider() == "Ollama" && !text.contains("://");
            let url = if lacks_scheme { format!("http://{text}").into() } else { text.into() };
            (EndpointSource::Literal, url)
        }
        Some(Destination::ConfigMap { name, key, .. }) => {
            let endpoint = EndpointView::unknown(EndpointSource::ConfigMap, Why::EndpointInConfigMap);
            view.endpoint = Some(endpoint.of(&format!("{name}/{key}")));
            return;
        }
    };
    view.endpoint = Some(endpoint_view::parse(source, &text, &view.namespace, state));
}

/// Adds the Secrets that a ModelConfig names, and its credentials in clear text.
fn add_credentials(view: &mut MemoryView, model_config: &Tree, field: &Pointer) {
    for (name, key) in [
        (["spec", "apiKeySecret"].as_slice(), ["spec", "apiKeySecretKey"].as_slice()),
        (&["spec", "tls", "caCertSecretRef"], &["spec", "tls", "caCertSecretKey"]),
    ] {
        if let Some(name) = model_config.filled_at(name) {
            let key = model_config.filled_at(key);
            view.secrets.push(SecretView::new((&view.namespace, name), key, field.clone()));
        }
    }
    let token = model_config.filled_at(&["spec", "azureOpenAI", "azureAdToken"]);
    view.inline.extend(token.map(|token| InlineView::new(field.clone(), token)));
    // All headers have the same place, so one of them is enough.
    let mut headers = model_config.at(&["spec", "defaultHeaders"]).into_iter().flat_map(Tree::keys);
    let credential = headers.find(|name| is_credential_name(name));
    view.inline.extend(credential.map(|name| InlineView::new(field.clone(), name)));
}
