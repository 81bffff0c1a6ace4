//! Makes a [`Forge`] with the state of every module. It stands above all other modules and may import each of them.

use crate::accounts::password::Hashing;
use crate::admit::Admissions;
use crate::context::{Base, Parts};
use crate::git::push::authority::SignedPushes;
use crate::git::snapshots::Snapshots;
use crate::grasp::authority::GraspPushes;
use crate::grasp::quota::Strangers;
use crate::jobs::Handlers;
use crate::relay::Relay;
use crate::sync::Running;
use crate::{Forge, Node, Settings, browse, work};
use abide_core::{Random, Redacted};
use abide_git::{Git, Layout};
use abide_store::Store;
use std::sync::Arc;

impl Forge {
    /// Makes the forge. `key` is the installation's secret (see [`crate::secret`]).
    pub fn new(
        store: Store,
        git: Git,
        layout: Layout,
        random: Arc<dyn Random>,
        mut settings: Settings,
        node: Node,
        key: Redacted<[u8; 32]>,
    ) -> Self {
        settings.grasp.limits = Arc::new(settings.relay.limits.clone());
        let login = &settings.login;
        let signed: Arc<dyn SignedPushes> = Arc::new(GraspPushes(settings.grasp.clone()));
        let parts = Parts::default()
            .with(Snapshots::new(settings.git.ref_cache))
            .with(browse::Shared::new(&settings.browse))
            .with(Hashing::new(login.password_cost, login.hashes_at_once, login.hashes_waiting))
            .with(Relay::new(settings.relay.clone(), &settings.public_url))
            .with(Admissions::new(&settings.relay))
            .with(Strangers::default())
            .with(Running::new(&settings.sync))
            .with(signed)
            .with(Handlers::new(work::handler));
        Self::of_parts(Base { store, git, layout, random, settings, node, key }, parts)
    }
}
