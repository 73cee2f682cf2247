//! A process that looks like one that runs PyTorch. Commands on standard input, one answer each.
#![allow(unsafe_code, clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "standin/mod.rs"]
#[allow(dead_code)]
mod standin;

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use standin::shape::GENERATIONS;
use standin::world::{Dice, World};

/// Loads the library and points it at an allocator.
fn load(path: &str, value: u64) -> Result<(), libloading::Error> {
    // SAFETY: the library has no initialisers, and the function has this signature.
    unsafe {
        let library = libloading::Library::new(path)?;
        library.get::<extern "C" fn(u64)>(b"fake_torch_set\0")?(value);
        std::mem::forget(library);
    }
    Ok(())
}

fn storm(world: World, mut dice: Dice) -> impl FnOnce() -> (World, Dice) {
    let on = Arc::new(AtomicBool::new(true));
    let going = Arc::clone(&on);
    let mut world = world;
    let thread = std::thread::spawn(move || {
        while going.load(Ordering::Relaxed) {
            world.step(&mut dice);
        }
        (world, dice)
    });
    move || {
        on.store(false, Ordering::Relaxed);
        thread.join().unwrap()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (library, torch) = (&arguments[1], arguments[2].as_str());
    let shape = *GENERATIONS.iter().find(|shape| shape.torch == torch).unwrap();
    let (mut world, mut dice) = (World::new(shape), Dice(7));
    if library != "-" {
        load(library, world.allocator()).unwrap();
    }
    println!("ready");
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        let mut words = line.split(' ');
        match words.next().unwrap() {
            "step" => {
                for _ in 0..words.next().unwrap().parse().unwrap() {
                    world.step(&mut dice);
                }
                println!("{}", serde_json::to_string(&world.truth()).unwrap());
            }
            "fill" => {
                world.fill(words.next().unwrap().parse().unwrap(), &mut dice);
                println!("{}", serde_json::to_string(&world.truth()).unwrap());
            }
            "pend" => {
                world.pend(&mut dice);
                println!("{}", serde_json::to_string(&world.truth()).unwrap());
            }
            "load" => {
                load(words.next().unwrap(), world.allocator()).unwrap();
                println!("loaded");
            }
            "storm" => {
                let calm = storm(world, dice);
                println!("storm");
                lines.next();
                (world, dice) = calm();
                println!("{}", serde_json::to_string(&world.truth()).unwrap());
            }
            "vanish" => {
                world.vanish();
                println!("vanished");
            }
            "exec" => {
                println!("exec");
                let error = Command::new("sleep").arg("600").exec();
                panic!("{error}");
            }
            _ => return,
        }
    }
}
