//! The macro that declares settings.

/// Declares a section of settings, and yields its struct with `Default` and
/// [`Section`](crate::settings::Section).
///
/// ```
/// use abide_core::settings::{bytes, count};
///
/// abide_core::settings! {
///     /// Limits of uploads.
///     #[derive(Debug, Clone)]
///     pub struct UploadSettings in "uploads" {
///         /// Maximum size of one upload.
///         [Common] max_bytes as size: u64 = "1GiB", bytes(..);
///         /// Maximum concurrent uploads.
///         at_once: usize = "4", count(1..);
///     }
///     with {
///         /// Bytes read at once.
///         buffer: usize = 64 << 10;
///     }
/// }
///
/// assert_eq!(UploadSettings::default().max_bytes, 1 << 30);
/// ```
///
/// * The doc comment is the help text of `abide config`.
/// * `as` gives the key (`uploads.size`) where the field has another name.
/// * After the default comes a function that parses the text and checks its bounds, see
///   [`settings::value`](crate::settings::value).
/// * `[Common, Password]` are [marks](crate::settings::Mark).
/// * `with` has fields that are not settings: constants, which tests may change, and values that the program sets.
/// * `sections` has fields that are sections themselves.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident in $section:literal {
            $(
                $(#[doc = $help:literal])+
                $([$($mark:ident),+])?
                $field:ident $(as $key:ident)?: $type:ty = $default:literal, $kind:expr;
            )*
        }
        $(with { $($(#[$with_meta:meta])* $with:ident: $with_type:ty = $value:expr;)* })?
        $(sections { $($(#[$part_meta:meta])* $part:ident: $part_type:ty;)* })?
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $help])+ $vis $field: $type,)*
            $($($(#[$with_meta])* $vis $with: $with_type,)*)?
            $($($(#[$part_meta])* $vis $part: $part_type,)*)?
        }

        impl $crate::settings::Section for $name {
            const SETTINGS: &'static [$crate::settings::Setting] = &[$(
                $crate::settings::Setting::new(
                    $crate::settings!(@name $section, $field $(, $key)?),
                    $default,
                    &[$($($crate::settings::Mark::$mark),+)?],
                    concat!($($help),+),
                ),
            )*];

            fn declare(all: &mut Vec<&'static $crate::settings::Setting>) {
                all.extend(Self::SETTINGS);
                $($(<$part_type as $crate::settings::Section>::declare(all);)*)?
            }

            fn read(texts: &dyn $crate::settings::Texts) -> Result<Self, $crate::settings::Invalid> {
                Ok(Self {
                    $($field: {
                        const SETTING: &$crate::settings::Setting =
                            $crate::settings::named::<$name>($crate::settings!(@name $section, $field $(, $key)?));
                        let parse = $kind;
                        let parsed: Result<$type, String> = parse(texts.of(SETTING));
                        parsed.map_err(|rule| $crate::settings::Invalid { setting: SETTING, rule })?
                    },)*
                    $($($with: $value,)*)?
                    $($($part: <$part_type as $crate::settings::Section>::read(texts)?,)*)?
                })
            }
        }

        impl Default for $name {
            fn default() -> Self {
                let defaults = <Self as $crate::settings::Section>::read(&$crate::settings::Defaults);
                defaults.unwrap_or_else(|invalid| panic!("the default of {} is invalid", invalid.setting.name))
            }
        }
    };
    // A struct that only joins sections.
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident
        $($rest:tt)*
    ) => {
        $crate::settings! { $(#[$meta])* $vis struct $name in "" {} $($rest)* }
    };
    (@name $section:literal, $field:ident) => { concat!($section, ".", stringify!($field)) };
    (@name $section:literal, $field:ident, $key:ident) => { concat!($section, ".", stringify!($key)) };
}
