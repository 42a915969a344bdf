#[path = "../tests/support/survival.rs"]
mod survival;
use std::{path::Path, sync::Arc, collections::*};
use afterimage::{tokens::*, id::Role, snapshot::Part};
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let t = std::time::Instant::now();
    let sessions = survival::sessions(&root, &counter);
    eprintln!("load {:?}", t.elapsed());
    for s in &sessions { for (mi, m) in survival::moments(s).enumerate() {
        let job = m.job(10);
        if job.original_tokens < 500 { continue; }
        eprintln!("ORIG\t{}|{mi}\t{}", s.name, job.original_tokens); let needed = m.used_again();
        let tail: HashSet<String> = m.tail.iter().flat_map(|p| survival::identifiers(p.snapshot.text())).collect();
        // id -> (user, args, asst, result, frames set count, last frame idx, count, first)
        let mut map: HashMap<String,[usize;8]> = HashMap::new();
        for (i,p) in m.compressed.iter().enumerate() { for c in p.snapshot.chunks() {
            let role = c.role().unwrap_or(p.role);
            let k = match (c.part(), role) { (Part::Call{..},_) => 1, (Part::Text, Role::User) => 0, (Part::Text,_) => 2, (Part::Reasoning,_)=>2, _ => 3 };
            for id in survival::identifiers(c.content()) {
                let e = map.entry(id).or_insert([0,0,0,0,0,usize::MAX,0,i]);
                e[k]+=1; if e[5]!=i { e[4]+=1; e[5]=i; } e[6]+=1;
            }
        }}
        for (id,e) in &map {
            println!("{}\t{}\t{mi}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", &s.group[..1], s.name.replace('\t'," "), id, e[0],e[1],e[2],e[3],e[4],e[5],e[6],e[7], m.compressed.len(), tail.contains(id) as u8, needed.contains(id) as u8, counter.count(&format!(" {id}")));
        }
    }}
}
