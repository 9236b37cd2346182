//! The part of a view that the embedder decides: where the text of memories goes, and with which credentials.

use crate::endpoint_view;
use crate::url::inline_credential;
use memgate_model::kind::Kind;
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
use crate::kagent::block::pointer;
use crate::kagent::embedder::{Destination, Embedder};

/// The fields of a ModelConfig.
const PROVIDER: &str = "/spec/provider";
const API_KEY: &[&str] = &["spec", "apiKeySecret"];
const CA_CERT: &[&str] = &["spec", "tls", "caCertSecretRef"];
const TOKEN: &[&str] = &["spec", "azureOpenAI", "azureAdToken"];
const HEADERS: &[&str] = &["spec", "defaultHeaders"];

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
        view.embedding_endpoint.clone_from(&view.endpoint);
        return;
    };
    let embedder = Embedder::new(line, found.tree());
    let endpoint = match embedder.endpoint() {
        Some(Destination::Written(path, _) | Destination::ConfigMap { path, .. }) => pointer(path),
        Some(Destination::Derived(_)) | None => Pointer::new(PROVIDER),
    };
    view.set_origin("provider", kind, PROVIDER);
    view.set_origin("endpoint", kind, &endpoint);
    view.set_origin("embedding.endpoint", kind, endpoint);
    view.set_origin("embedding", kind, PROVIDER);
    view.set_origin("embedding.model", kind, pointer(embedder.model_path()));
    view.set_origin("secrets", kind, pointer(API_KEY));
    view.set_origin("inline", kind, "/spec");
    view.set("embedding", Some(ViewValue::Object));
    view.set("embedding.model", embedder.model());
    view.set("embedding.provider", Some(embedder.provider()));
    view.set("provider", Some(embedder.provider()));
    add_endpoint(view, &embedder, (kind, &field), state);
    view.embedding_endpoint.clone_from(&view.endpoint);
    add_credentials(view, found.tree(), (kind, &field));
}

fn add_endpoint(
    view: &mut MemoryView,
    embedder: &Embedder<'_>,
    (kind, field): (&'static Kind, &Pointer),
    state: &mut StateReader<'_>,
) {
    let (source, text) = match embedder.endpoint() {
        None => return,
        Some(Destination::Derived(url)) => (EndpointSource::Derived, url),
        Some(Destination::Written(path, text)) => {
            view.inline.extend(inline_credential(text, field.clone()).map(|it| it.from(kind, pointer(path))));
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
fn add_credentials(view: &mut MemoryView, model_config: &Tree, (kind, field): (&'static Kind, &Pointer)) {
    for (path, key) in
        [(API_KEY, ["spec", "apiKeySecretKey"].as_slice()), (CA_CERT, &["spec", "tls", "caCertSecretKey"])]
    {
        if let Some(name) = model_config.filled_at(path) {
            let secret = SecretView::new((&view.namespace, name), model_config.filled_at(key), field.clone());
            view.secrets.push(secret.from(kind, pointer(path)));
        }
    }
    let inline = |value: &str, path: &[&str]| InlineView::new(field.clone(), value).from(kind, pointer(path));
    let token = model_config.filled_at(TOKEN);
    view.inline.extend(token.map(|token| inline(token, TOKEN)));
    // All headers have the same place, so one of them is enough.
    let mut headers = model_config.at(HEADERS).into_iter().flat_map(Tree::keys);
    let credential = headers.find(|name| is_credential_name(name));
    view.inline.extend(credential.map(|name| inline(name, HEADERS)));
}
