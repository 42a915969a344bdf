#[path="../benches/support/mod.rs"] mod support;
use std::sync::Arc; use afterimage::{hud::*,id::Millis};
fn main(){ let (_,s)=support::corpus(); let fmt=std::env::args().nth(1).unwrap(); let n:usize=std::env::args().nth(2).unwrap().parse().unwrap();
 let hud=Hud::builder(Arc::new(support::KnownCounts)).format(format_by_name(&fmt).unwrap()).build();
 let (mut fr,mut ch,mut by)=(0,0,0);
 for i in 0..n { for s in &s { for (f,sh) in &s.frames { let x=hud.render_frame(f,sh,Millis::new(0)).unwrap(); if i==0 {fr+=1;ch+=x.len();by+=x.text().len();} std::hint::black_box(&x); } } }
 eprintln!("{fr} frames {ch} chunks {by} bytes");
}
