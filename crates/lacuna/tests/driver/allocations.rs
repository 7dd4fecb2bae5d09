//! What a run costs the host beside its launch: no allocation, and no call of the driver that changes the context.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use half::f16;
use lacuna::conv::{self, Conv};
use lacuna::matrix::{Csr, generate};
use lacuna::spmm::{self, Reduce};
use lacuna::{Bags, CsrMatrix, Device, NHot, Sddmm, SparseAttention, SparseSoftmax, Spmm, Stream};

use super::journal;

/// The system's allocator, which counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is the system allocator's; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something twice, and asserts that the second time allocates nothing. The first loads kernels.
fn expect_none(what: &str, mut run: impl FnMut() -> lacuna::Result<()>) {
    run().unwrap();
    let before = ALLOCATIONS.get();
    run().unwrap();
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations of the second run of {what}");
}

/// Products of a pattern with a long row, by the library's choice and in other ways.
fn products(device: &Device, stream: &Stream) {
    let pattern = generate::uniform(256, 512, 0.75, 1).unwrap();
    let host = Csr::with_values(pattern, vec![1.0_f32; 32_768]).unwrap();
    let a = CsrMatrix::new(device, &host).unwrap();
    let (b, mut c) = (device.zeros::<f32>(512 * 64).unwrap(), device.zeros::<f32>(256 * 64).unwrap());
    let mut winners = device.zeros::<u32>(256 * 64).unwrap();
    let options = spmm::Options::default();
    for options in [options, options.longest_piece(16), options.reduce(Reduce::Mean), options.beta(1.0)] {
        let plan = Spmm::plan_with(&a, 64, options).unwrap();
        expect_none("SpMM", || plan.run(stream, &a, b.as_slice(), c.as_slice_mut()));
    }
    let plan = Spmm::plan_with(&a, 64, options.reduce(Reduce::Max)).unwrap();
    expect_none("SpMM with winners", || {
        let operands = spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: None };
        plan.run_with_winners(stream, operands, winners.as_slice_mut())
    });
    let halves = host.map_values(f16::from_f32);
    let packed = CsrMatrix::<f16, u16>::prepacked(device, &halves).unwrap();
    let plan = Spmm::plan(&packed, 64).unwrap();
    let (b, mut c) = (device.zeros(512 * 64).unwrap(), device.zeros(256 * 64).unwrap());
    expect_none("SpMM, prepacked", || plan.run(stream, &packed, b.as_slice(), c.as_slice_mut()));
}

/// Operations whose sparse matrix is a mask.
fn masked(device: &Device, stream: &Stream) {
    let mask = generate::band_random(128, 32, 0.9, 1).unwrap();
    let values = vec![1.0_f32; mask.nnz()];
    let mask = Csr::with_values(mask, values).unwrap();
    let a = CsrMatrix::new(device, &mask).unwrap();
    let mut d = a.with_zeros::<f32>(1).unwrap();
    let rows = [(); 3].map(|()| device.zeros::<f32>(128 * 64).unwrap());
    let [q, k, v] = rows.each_ref().map(|rows| rows.as_slice());
    let mut o = device.zeros::<f32>(128 * 64).unwrap();
    for kernel in Sddmm::plan(&a, 64).unwrap().legal()[0].iter() {
        let options = lacuna::sddmm::Options::default().algorithm(kernel.algorithm);
        let plan = Sddmm::plan_with(&a, 64, options).unwrap();
        expect_none(kernel.entry.name, || plan.run(stream, q, k, &mut d));
    }
    let plan = SparseSoftmax::plan(&a).unwrap();
    expect_none("softmax", || plan.run(stream, &a, &mut d));
    let plan = SparseAttention::plan(&a, 64).unwrap();
    expect_none("attention", || plan.run(stream, q, k, v, o.as_slice_mut()));
}

/// Operations without a sparse matrix of CSR.
fn others(device: &Device, stream: &Stream) {
    let bags = Bags::<u32>::new(device, 100, &[0, 2, 2, 5], &[3, 99, 1, 1, 7]).unwrap();
    let (table, mut out) = (device.zeros::<f32>(100 * 32).unwrap(), device.zeros::<f32>(3 * 32).unwrap());
    let mut gradient = device.zeros::<f32>(100 * 32).unwrap();
    let plan = NHot::plan(&bags, 32).unwrap();
    expect_none("lookup", || plan.run(stream, &bags, table.as_slice(), out.as_slice_mut()));
    expect_none("its gradient", || {
        plan.backward_table(stream, &bags, out.as_slice(), gradient.as_slice_mut())
    });

    let shape = conv::Shape::new(16, [8, 8], 32, [3, 3]);
    let plan = Conv::<f32>::plan(device, shape, conv::Options::default()).unwrap();
    let filters = device.zeros::<f32>(shape.filters_len()).unwrap();
    let filters = plan.pack(stream, filters.as_slice()).unwrap();
    let input = device.zeros::<f32>(shape.input_len()).unwrap();
    let mut out = device.zeros::<f32>(shape.output_len()).unwrap();
    expect_none("convolution", || {
        plan.run(stream, conv::Operands::new(input.as_slice(), &filters, out.as_slice_mut()))
    });
}

#[test]
fn the_second_run_of_a_plan_allocates_nothing() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        products(&device, &stream);
        masked(&device, &stream);
        others(&device, &stream);
    };
    let journal = journal("allocations::the_second_run_of_a_plan_allocates_nothing", &[], work);
    if let Some(journal) = journal {
        assert!(journal.iter().filter(|&word| word == "launch").count() > 20);
    }
}

#[test]
fn a_context_that_is_current_is_not_set_again() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let a =
            CsrMatrix::new(&device, &Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0_f32]).unwrap()).unwrap();
        let plan = Spmm::plan(&a, 2).unwrap();
        let (b, mut c) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(2).unwrap());
        let mut run = || plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
        super::note("here");
        run();
        super::note("there");
        // A thread has no current context at first.
        std::thread::scope(|scope| scope.spawn(|| (run(), run())).join().unwrap());
    };
    let journal =
        journal("allocations::a_context_that_is_current_is_not_set_again", &["FAKE_CONTEXTS"], work);
    if let Some(journal) = journal {
        let run = journal.iter().skip_while(|&word| word != "here").take(8);
        let run: Vec<&str> = run.map(String::as_str).filter(|word| *word != "load").collect();
        assert_eq!(run[..6], ["here", "launch", "there", "set-context", "launch", "launch"]);
    }
}
