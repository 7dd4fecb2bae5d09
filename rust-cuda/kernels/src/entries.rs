// Calls `entries!` for each group of the list of kernels. A file of its own, so that a test of the repository's workspace,
// which has no `cuda_std`, expands the same rule and compares what it names with the host's table of entries.
macro_rules! entry_points {
    ($($op:ident { $($(#[$attribute:meta])* { $($name:expr => $kernel:ty;)+ })+ })+) => {
        $($(entries! { [$(#[$attribute])*] $($name => $kernel;)+ })+)+
    };
}
lacuna_kernels::for_each_kernel!(entry_points);
