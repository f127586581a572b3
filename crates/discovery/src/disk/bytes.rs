//! The snapshots of one replica without a disk, for simulations: the bytes of the files.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    contents::{decode_host, decode_member, encode_host, encode_member},
    file::FileError,
};
use crate::{catalog::Catalog, kept::LoadedSnapshots};

/// The bytes of the snapshots of one replica. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct SnapshotBytes {
    host: Option<Vec<u8>>,
    members: BTreeMap<Arc<str>, Vec<u8>>,
}

impl SnapshotBytes {
    /// Takes snapshots of what the catalog knows. As with files, what is not known yet replaces nothing.
    ///
    /// # Panics
    ///
    /// If there is too much for a file.
    pub fn update(&mut self, catalog: &Catalog) {
        self.try_to_update(catalog)
            .expect("what is simulated fits into files");
    }

    fn try_to_update(&mut self, catalog: &Catalog) -> Result<(), FileError> {
        let now = Timestamp::now();
        let ((host, members), version) = catalog.look(|state| {
            let members = state.members();
            let members = members.filter_map(|member| state.keep_member(&member.name, now));
            (state.keep_host(now), members.collect::<Vec<_>>())
        });
        if let Some(host) = host {
            self.host = Some(encode_host(&host, version)?);
        }
        for member in members {
            let bytes = encode_member(&member, version)?;
            self.members.insert(member.name, bytes);
        }
        Ok(())
    }

    /// What they have, as a process that starts reads it.
    ///
    /// # Panics
    ///
    /// If it can't read them.
    #[must_use]
    pub fn load(&self) -> LoadedSnapshots {
        self.try_to_load()
            .expect("what was written can be read again")
    }

    fn try_to_load(&self) -> Result<LoadedSnapshots, FileError> {
        let now = Timestamp::now();
        let mut loaded = LoadedSnapshots::default();
        if let Some(bytes) = &self.host {
            loaded.put_host(decode_host(bytes, now)?);
        }
        for bytes in self.members.values() {
            let member = decode_member(bytes, now, &mut loaded.shared)?;
            loaded.put_member(member);
        }
        Ok(loaded)
    }
}
