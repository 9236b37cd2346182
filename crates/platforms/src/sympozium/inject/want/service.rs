//! Memory that is a Service: its URL, and an init container that waits for it.

use crate::inject::{field_origin, resource_name};
use memgate_model::edit::Origin;
use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_primitives::pointer::Pointer;

use super::super::super::api::{private_url, shared_url};
use super::super::super::codes::HOST_NETWORK_DNS;
use super::super::super::variables::{PRIVATE_URL, SHARED_URL};
use super::WantedBuilder;
use super::containers::wait_container;
use super::mode::is_loopback;
use crate::inject::parts::WantedPart;

const PRIVATE_WAIT_CONTAINER: &str = "wait-for-memory";
const SHARED_WAIT_CONTAINER: &str = "wait-for-shared-memory";

impl WantedBuilder<'_, '_> {
    pub(super) fn private_service(&mut self, origin: &Origin) {
        let url = private_url(&self.found.instance, self.pod.namespace);
        self.private_on = true;
        self.add_variable(PRIVATE_URL, url.as_str(), origin);
        self.parts.first_init_container =
            self.wait_container(PRIVATE_WAIT_CONTAINER, "memory server", (PRIVATE_URL, &url), origin);
        self.check_dns_policy();
    }

    pub(super) fn shared_service(&mut self, ensemble: &Object) {
        let url = shared_url(&ensemble.name, self.pod.namespace);
        let origin = field_origin(&resource_name("Ensemble", ensemble), "spec.sharedMemory.enabled");
        self.parts.last_init_container =
            self.wait_container(SHARED_WAIT_CONTAINER, "shared memory server", (SHARED_URL, &url), &origin);
        self.check_dns_policy();
    }

    /// An init container that waits for the server that the agent will use. `None` if that server is not known or
    /// is in the pod, or if the pod already has this init container.
    fn wait_container(
        &self,
        name: &str,
        server: &str,
        (variable, default_url): (&str, &str),
        origin: &Origin,
    ) -> Option<WantedPart> {
        let url = match self.existing.get(variable) {
            None => default_url,
            Some((_, entry)) if entry.value_from.is_some() => return None,
            Some((_, entry)) => entry.value.as_deref().unwrap_or_default(),
        };
        if url.is_empty() || url.contains("$(") || is_loopback(url) || self.pod.parts.has_container(name) {
            return None;
        }
        let tree = wait_container(name, server, url, &self.wait_image, self.pod.parts.has_user());
        Some(WantedPart { name: name.to_owned(), tree, origin: origin.clone() })
    }

    fn check_dns_policy(&mut self) {
        let already_warned = self.warnings.iter().any(|warning| *warning.code == HOST_NETWORK_DNS);
        let resolves =
            !self.pod.parts.host_network || self.pod.parts.dns_policy == Some("ClusterFirstWithHostNet");
        if !already_warned && !resolves {
            let message =
                "must be ClusterFirstWithHostNet: with hostNetwork the names of memory Services need it";
            self.warnings.push(Finding::warn(&HOST_NETWORK_DNS, Pointer::new("/spec/dnsPolicy"), message));
        }
    }
}
