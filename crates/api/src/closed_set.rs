//! Closed sets of CamelCase words: condition types, reasons and states, as the API conventions ask for them.

/// Declares an enum whose variants are written exactly as they are named.
///
/// The enum gets `ALL`, `as_str`, `parse` and `Display`.
macro_rules! closed_set {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$attribute])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every word of the set, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word as it appears in an object.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// The value of this word; `None` for a word that only another version of fedrs knows.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl From<$name> for &'static str {
            fn from(word: $name) -> Self {
                word.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use closed_set;
