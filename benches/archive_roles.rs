//! All chunks of an archive by who speaks them, beside a plain loop over a list of their roles.
//!
//! `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::{
    id::{FrameSeq, Role},
    snapshot::group_chunks_by_role,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::frames::{Frames, sizes};

fn roles(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_roles/{}", frames.name));
    for count in sizes() {
        let archive = frames.archive(count);
        let view = archive.range(FrameSeq::new(0)..=FrameSeq::new(count)).unwrap();
        let list: Vec<Option<Role>> = view.chunks().map(|chunk| chunk.role()).collect();
        let users = naive(&list);
        assert_eq!(view.by_role().count(Role::User), users);
        assert_eq!(group_chunks_by_role(view.chunks()).get(Role::User).len(), users);
        group.throughput(Throughput::Elements(list.len() as u64));
        group.bench_function(BenchmarkId::new("plain loop over a list of roles", count), |bench| {
            bench.iter(|| naive(black_box(&list)));
        });
        group.bench_function(BenchmarkId::new("by role", count), |bench| {
            bench.iter(|| black_box(&view).by_role().count(Role::User));
        });
        group.bench_function(BenchmarkId::new("list of chunks, by role", count), |bench| {
            bench.iter(|| group_chunks_by_role(black_box(&view).chunks()).get(Role::User).len());
        });
    }
    group.finish();
}

fn naive(roles: &[Option<Role>]) -> usize {
    let mut groups: [Vec<u32>; 4] = Default::default();
    for (chunk, role) in (0..).zip(roles) {
        groups[role.map_or(3, |role| role as usize)].push(chunk);
    }
    black_box(&groups)[Role::User as usize].len()
}

criterion_group!(benches, roles);
criterion_main!(benches);
