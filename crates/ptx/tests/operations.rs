//! Compiles every operation of `Gpu` for the device and looks for the instruction that it stands for. On a machine
//! without a device compiler the builds say so and pass.
use std::fs;
use std::path::{Path, PathBuf};

use lacuna_ptx::{Build, Builder, Cache, DeviceCompiler, Target};

/// An entry, its barrier instructions, and what its PTX holds. `…` stands for operands that do not matter.
type Expected = (&'static str, u32, &'static [&'static str]);

/// On every target.
const EVERYWHERE: &[Expected] = &[
    (
        "indices",
        0,
        &[
            "mov.u32 … %tid.x",
            "mov.u32 … %tid.y",
            "mov.u32 … %tid.z",
            "mov.u32 … %ctaid.x",
            "mov.u32 … %ctaid.y",
            "mov.u32 … %ctaid.z",
            "mov.u32 … %ntid.x",
            "mov.u32 … %ntid.y",
            "mov.u32 … %ntid.z",
            "mov.u32 … %nctaid.x",
            "mov.u32 … %nctaid.y",
            "mov.u32 … %nctaid.z",
            "mov.u32 … %laneid",
        ],
    ),
    ("barriers", 5, &["bar.sync 0", "bar.red.or.pred …", "bar.red.popc.u32 …", "bar.warp.sync -1"]),
    ("named_barriers", 4, &["bar.sync 1, 64", "bar.sync 2, 64", "bar.arrive 1, 64", "bar.arrive 2, 64"]),
    ("fence", 0, &["membar.gl"]),
    (
        "shuffles",
        0,
        // Source lane or distance, segment mask and last lane, lanes that take part.
        &[
            "shfl.sync.idx.b32 … 5, 31, -1",
            "shfl.sync.idx.b32 … 3, 6175, -1",
            "shfl.sync.down.b32 … 1, 31, -1",
            "shfl.sync.down.b32 … 2, 6175, -1",
            "shfl.sync.up.b32 … 1, 0, -1",
            "shfl.sync.up.b32 … 3, 6144, -1",
            "shfl.sync.bfly.b32 … 16, 31, -1",
            "shfl.sync.bfly.b32 … 4, 6175, -1",
            "shfl.sync.bfly.b32 … 8, 31, 65535",
        ],
    ),
    (
        "votes",
        0,
        &[
            "vote.sync.all.pred … -1",
            "vote.sync.any.pred … -1",
            "vote.sync.ballot.b32 … -1",
            "vote.sync.ballot.b32 … 65535",
        ],
    ),
    (
        "copies_global",
        0,
        &[
            "ld.global.u8 …",
            "ld.global.u16 …",
            "ld.global.u32 …",
            "ld.global.v2.u32 …",
            "ld.global.v4.u32 …",
            "st.global.u8 …",
            "st.global.u16 …",
            "st.global.u32 …",
            "st.global.v2.u32 …",
            "st.global.v4.u32 …",
        ],
    ),
    (
        "copies_readonly",
        0,
        &[
            "ld.global.nc.u8 …",
            "ld.global.nc.u16 …",
            "ld.global.nc.u32 …",
            "ld.global.nc.v2.u32 …",
            "ld.global.nc.v4.u32 …",
        ],
    ),
    (
        "copies_streaming",
        0,
        &[
            "ld.global.nc.L1::no_allocate.u8 …",
            "ld.global.nc.L1::no_allocate.u16 …",
            "ld.global.nc.L1::no_allocate.u32 …",
            "ld.global.nc.L1::no_allocate.v2.u32 …",
            "ld.global.nc.L1::no_allocate.v4.u32 …",
            "st.global.cs.u8 …",
            "st.global.cs.u16 …",
            "st.global.cs.u32 …",
            "st.global.cs.v2.u32 …",
            "st.global.cs.v4.u32 …",
        ],
    ),
    (
        "copies_shared",
        17,
        &[
            "ld.shared.u8 …",
            "ld.shared.u16 …",
            "ld.shared.u32 …",
            "ld.shared.v2.u32 …",
            "ld.shared.v4.u32 …",
            "st.shared.u8 …",
            "st.shared.u16 …",
            "st.shared.u32 …",
            "st.shared.v2.u32 …",
            "st.shared.v4.u32 …",
        ],
    ),
    (
        "atomics_global",
        24,
        &[
            "atom.global.add.u32 …",
            "atom.global.add.u64 …",
            "atom.global.add.f32 …",
            "atom.global.max.u32 …",
            "atom.global.max.s32 …",
            "atom.global.max.u64 …",
            "atom.global.or.b32 …",
        ],
    ),
    (
        "atomics_shared",
        21,
        &[
            "atom.shared.add.u32 …",
            "atom.shared.add.u64 …",
            "atom.shared.add.f32 …",
            "atom.shared.max.u32 …",
            "atom.shared.max.s32 …",
            "atom.shared.max.u64 …",
        ],
    ),
    (
        "arithmetic",
        0,
        &[
            "fma.rn.f32 …",
            "ex2.approx.f32 …",
            "ex2.approx.ftz.f32 …",
            "lg2.approx.f32 …",
            "rcp.approx.f32 …",
            "cvt.rn.f16.f32 …",
            "cvt.f32.f16 …",
        ],
    ),
];

/// From sm_80 on.
const AMPERE: &[Expected] = &[
    ("copies_brought", 0, &["cp.async.ca.shared.global … 4", "ld.global.nc.v4.u32 …"]),
    (
        "copies_async",
        9,
        &[
            "cp.async.ca.shared.global … 4",
            "cp.async.ca.shared.global … 8",
            "cp.async.cg.shared.global … 16",
            "cp.async.commit_group",
            "cp.async.wait_group 0",
            "cp.async.wait_group 1",
        ],
    ),
    (
        "copies_async_or_zero",
        3,
        // The width, and how much of it is read.
        &[
            "cp.async.ca.shared.global … 4, …",
            "cp.async.ca.shared.global … 8, …",
            "cp.async.cg.shared.global … 16, …",
        ],
    ),
    ("packed", 0, &["cvt.rn.bf16.f32 …", "cvt.rn.bf16x2.f32 …", "cvt.rn.f16x2.f32 …"]),
    ("greatest", 0, &["max.NaN.f32 …"]),
    (
        "products",
        0,
        &[
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 …",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 …",
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 …",
        ],
    ),
    (
        "matrices",
        1,
        &["ldmatrix.sync.aligned.m8n8.x4.shared.b16 …", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 …"],
    ),
];

/// What every product of a warpgroup goes with, and the product itself.
macro_rules! warpgroup {
    ($product:literal) => {
        warpgroup!($product, " … 1, 1, 1, 0, 1")
    };
    ($product:literal, $operands:literal) => {
        &[
            "fence.proxy.async.shared::cta",
            "wgmma.fence.sync.aligned",
            // Of an address in shared memory, the bits that a descriptor has room for: in a cluster those above say whose it is.
            "bfe.u32 … 4, 14",
            concat!("wgmma.mma_async.sync.aligned.", $product, $operands),
            "wgmma.commit_group.sync.aligned",
            "wgmma.wait_group.sync.aligned 1",
            "wgmma.wait_group.sync.aligned 0",
        ]
    };
}

/// On sm_90a.
const HOPPER: &[Expected] = &[
    ("wait", 0, &["griddepcontrol.wait"]),
    (
        "cluster",
        4,
        &[
            "barrier.cluster.arrive.relaxed.aligned",
            "barrier.cluster.wait.aligned",
            "barrier.cluster.arrive.aligned",
            "mapa.shared::cluster.u32 …",
            "st.shared::cluster.u32 …",
        ],
    ),
    (
        "copies_bulk",
        0,
        &[
            "elect.sync _|first, -1",
            "@first prefetch.tensormap …",
            "@first mbarrier.init.shared::cta.b64 …",
            "fence.mbarrier_init.release.cluster",
            "@first mbarrier.arrive.expect_tx.shared::cta.b64 …",
            "@first cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes …",
            "mbarrier.try_wait.parity.shared::cta.b64 over, …",
        ],
    ),
    ("registers", 0, &["setmaxnreg.dec.sync.aligned.u32 24", "setmaxnreg.inc.sync.aligned.u32 160"]),
    ("products_f16_32", 1, warpgroup!("m64n32k16.f32.f16.f16")),
    ("products_f16_64", 1, warpgroup!("m64n64k16.f32.f16.f16")),
    ("products_f16_128", 1, warpgroup!("m64n128k16.f32.f16.f16")),
    ("products_bf16_32", 1, warpgroup!("m64n32k16.f32.bf16.bf16")),
    ("products_bf16_64", 1, warpgroup!("m64n64k16.f32.bf16.bf16")),
    ("products_bf16_128", 1, warpgroup!("m64n128k16.f32.bf16.bf16")),
    ("products_f16_cores_64", 1, warpgroup!("m64n64k16.f32.f16.f16", " … 1, 1, 1, 0, 0")),
    ("products_bf16_cores_32", 1, warpgroup!("m64n32k16.f32.bf16.bf16", " … 1, 1, 1, 0, 0")),
    ("products_bf16_cores_64", 1, warpgroup!("m64n64k16.f32.bf16.bf16", " … 1, 1, 1, 0, 0")),
    ("products_bf16_cores_128", 1, warpgroup!("m64n128k16.f32.bf16.bf16", " … 1, 1, 1, 0, 0")),
    ("products_f16_columns_64", 1, warpgroup!("m64n64k16.f32.f16.f16", " … 1, 1, 1, 0, 0")),
    ("products_bf16_columns_128", 1, warpgroup!("m64n128k16.f32.bf16.bf16", " … 1, 1, 1, 0, 0")),
    ("products_f16_registers_32", 1, warpgroup!("m64n32k16.f32.f16.f16", " … 1, 1, 1, 1")),
    ("products_f16_registers_64", 1, warpgroup!("m64n64k16.f32.f16.f16", " … 1, 1, 1, 1")),
    ("products_bf16_registers_128", 1, warpgroup!("m64n128k16.f32.bf16.bf16", " … 1, 1, 1, 1")),
    ("products_tf32_registers_32", 1, warpgroup!("m64n32k8.f32.tf32.tf32", " … 1, 1, 1")),
    ("products_tf32_registers_128", 1, warpgroup!("m64n128k8.f32.tf32.tf32", " … 1, 1, 1")),
];

/// What a target has.
fn expected(target: Target) -> Vec<&'static Expected> {
    let ampere = if target >= Target::Sm80 { AMPERE } else { &[] };
    let hopper = if target == Target::Sm90a { HOPPER } else { &[] };
    [EVERYWHERE, ampere, hopper].into_iter().flatten().collect()
}

fn operations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operations")
}

/// All targets, with as many barriers as the sources ask for; nothing where there is no compiler.
fn build() -> Option<Build> {
    let cache = Cache::of_user().expect("a cache directory");
    if let Err(error) = DeviceCompiler::find(&cache) {
        eprintln!("skipped: {error}");
        return None;
    }
    let barriers = |name: &str| {
        expected(Target::Sm90a)
            .into_iter()
            .find(|(entry, ..)| *entry == name)
            .map(|(_, barriers, _)| *barriers)
    };
    let build =
        Builder::new(operations()).targets(&Target::ALL).expect_barriers(barriers).cache(cache).build();
    Some(build.unwrap_or_else(|error| panic!("{error}")))
}

/// Whether a line of the PTX is this instruction.
fn has(ptx: &str, instruction: &str) -> bool {
    let (head, operands) = instruction.split_once(" …").unwrap_or((instruction, ""));
    // An operand at the end that does not matter, behind one that does.
    let (operand, open) = operands.strip_suffix(", …").map_or((operands, false), |operand| (operand, true));
    let matches = |code: &str| {
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        code == instruction
            || instruction.contains('…')
                && code.strip_prefix(head).is_some_and(|rest| {
                    let rest = if open { rest.rsplit_once(", ").map_or("", |(rest, _)| rest) } else { rest };
                    rest.starts_with(' ') && rest.ends_with(operand)
                })
    };
    // Only what a semicolon ends, before a comment.
    fn code(line: &str) -> Option<&str> {
        line.split("//").next()?.trim_end().strip_suffix(';')
    }
    ptx.lines().filter_map(code).any(matches)
}

#[test]
fn every_operation_is_its_instruction() {
    let Some(build) = build() else { return };
    for module in &build.modules {
        let target = module.target;
        let expected = expected(target);
        assert_eq!(module.entries.len(), expected.len(), "{target}");
        for (name, _, instructions) in expected {
            let entry = module.entry(name).unwrap_or_else(|| panic!("no {name} for {target}"));
            assert!(!entry.ptx.contains(".extern .func"), "{target}\n{}", entry.ptx);
            for instruction in *instructions {
                assert!(has(&entry.ptx, instruction), "{target}: no `{instruction}`\n{}", entry.ptx);
            }
        }
    }
}

#[test]
fn ptxas_takes_every_operation() {
    let Some(build) = build() else { return };
    let Some(table) = build.resources else {
        eprintln!("skipped: no ptxas");
        return;
    };
    for module in
        build.modules.iter().filter(|module| table.rows.iter().any(|row| row.target == module.target))
    {
        for entry in &module.entries {
            let row = table.row(&entry.name, module.target).unwrap();
            assert!(row.registers > 0 && row.stack_bytes == 0, "{row:?}");
        }
    }
}

#[test]
fn the_kernels_use_every_method_of_the_traits() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/src");
    let traits: String =
        ["device.rs", "hopper.rs"].map(|file| fs::read_to_string(source.join(file)).unwrap()).concat();
    let mut kernels = String::new();
    for file in fs::read_dir(operations().join("src")).unwrap() {
        kernels += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    let methods: Vec<_> = traits
        .lines()
        .filter_map(|line| line.trim_start().trim_start_matches("unsafe ").strip_prefix("fn "))
        .map(|line| line.split(['(', '<']).next().unwrap())
        .collect();
    assert!(
        methods.contains(&"load") && methods.contains(&"rcp_approx") && methods.contains(&"bulk_wait"),
        "{methods:?}"
    );
    for method in methods {
        // Atomics on the two memories share their code: there a method is a name in a list.
        let uses = [format!("gpu.{method}("), format!("gpu.{method}::<"), format!(", {method}")];
        assert!(uses.iter().any(|used| kernels.contains(used)), "no operation uses `{method}`");
    }
}

#[test]
fn instructions_are_told_apart() {
    let ptx = "\tcp.async.cg [%r1], [%rd1], 16, %r2;\n\tbar.sync \t0;\n\tshfl.sync.up.b32 \t%r1, %r2, 3, 6144, -1;\n// membar.gl\n";
    assert!(has(ptx, "bar.sync 0") && has(ptx, "shfl.sync.up.b32 … 3, 6144, -1"));
    assert!(has(ptx, "cp.async.cg … 16, …") && has(ptx, "cp.async.cg …"));
    let commented = "\twgmma.wait_group.sync.aligned 0; // {%f1, membar.gl;\n";
    assert!(has(commented, "wgmma.wait_group.sync.aligned 0") && !has(commented, "membar.gl"));
    for absent in ["cp.async.cg … 16", "cp.async.cg … 8, …"] {
        assert!(!has(ptx, absent), "{absent}");
    }
    for absent in ["bar.sync 1", "bar.sync", "shfl.sync.up.b32 … 0, -1", "shfl.sync.up …", "membar.gl"] {
        assert!(!has(ptx, absent), "{absent}");
    }
}
