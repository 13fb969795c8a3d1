//! `sqlx::migrate!` embeds the folder, and does not notice new files in it by itself.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
