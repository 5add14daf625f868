//! Pictures, and the connection to the X server.

use arpo::screen::decode_png;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use x11rb::connection::Connection;
use x11rb::protocol::xfixes::ConnectionExt as _;
use x11rb::protocol::xproto::{ConnectionExt, ImageFormat};

use super::{Witness, wait};
use crate::desk::{Desk, SCREEN, eventually, has_desktops};

fn about(desk: &Desk) -> Value {
    wait(async {
        let url = format!("http://{}/arpo", desk.address);
        reqwest::get(url).await.unwrap().json().await.unwrap()
    })
}

async fn ask(desk: &Desk, path: &str) -> (u16, Vec<u8>) {
    let answer = reqwest::get(format!("http://{}{path}", desk.address))
        .await
        .unwrap();
    (
        answer.status().as_u16(),
        answer.bytes().await.unwrap().into(),
    )
}

#[test]
fn a_screenshot_is_what_x_shows_and_the_pointer() {
    if !has_desktops("a_screenshot_is_what_x_shows_and_the_pointer", &[]) {
        return;
    }
    let mut desk = Desk::start(&[]);
    let _witness = Witness::open(&mut desk);
    let (status, png) = wait(ask(&desk, "/screenshot"));
    assert_eq!(status, 200);
    let screenshot = decode_png(&png).unwrap();
    assert_eq!(screenshot.size(), SCREEN);
    let (x, screen) = x11rb::connect(Some(&desk.screen.display)).unwrap();
    let root = x.setup().roots[screen].root;
    let (width, height) = (SCREEN.width as u16, SCREEN.height as u16);
    let image = x
        .get_image(ImageFormat::Z_PIXMAP, root, 0, 0, width, height, !0)
        .unwrap();
    let image = image.reply().unwrap().data;
    x.xfixes_query_version(5, 0).unwrap().reply().unwrap();
    let cursor = x.xfixes_get_cursor_image().unwrap().reply().unwrap();
    let left = i32::from(cursor.x) - i32::from(cursor.xhot);
    let top = i32::from(cursor.y) - i32::from(cursor.yhot);
    let mut under_pointer = 0;
    for (index, (came, pixel)) in screenshot.rgb().chunks(3).zip(image.chunks(4)).enumerate() {
        let column = (index as i32) % SCREEN.width as i32 - left;
        let row = (index as i32) / SCREEN.width as i32 - top;
        let is_within = (0..i32::from(cursor.width)).contains(&column)
            && (0..i32::from(cursor.height)).contains(&row);
        let mut over = 0;
        if is_within {
            let at = row as usize * usize::from(cursor.width) + column as usize;
            over = cursor.cursor_image[at];
        }
        let alpha = f64::from(over >> 24) / 255.0;
        let channel = |shift: u32, under: u8| {
            let over = f64::from(over >> shift & 0xff);
            (over + f64::from(under) * (1.0 - alpha)).floor().min(255.0) as u8
        };
        under_pointer += usize::from(alpha > 0.0);
        let expected = [
            channel(16, pixel[2]),
            channel(8, pixel[1]),
            channel(0, pixel[0]),
        ];
        let is_close = came.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1);
        assert!(
            if alpha == 0.0 {
                came == expected
            } else {
                is_close
            },
            "pixel {index}"
        );
    }
    assert!(under_pointer > 10, "the pointer is in the picture");
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .count()
}

#[test]
fn screenshots_use_up_no_connections() {
    if !has_desktops("screenshots_use_up_no_connections", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    wait(guest.screenshot()).unwrap();
    let before = open_files(desk.screen.xvfb.0.id());
    wait(async {
        for _ in 0..100 {
            let four = [(); 4].map(|()| ask(&desk, "/screenshot"));
            for (status, png) in futures::future::join_all(four).await {
                assert_eq!(status, 200);
                assert!(png.starts_with(b"\x89PNG"));
            }
            let (status, _) = ask(&desk, "/cursor_position").await;
            assert_eq!(status, 200);
        }
    });
    assert_eq!(open_files(desk.screen.xvfb.0.id()), before);
    let about = about(&desk);
    assert_eq!(about["connections"], 1);
    assert_eq!(about["screenshots"], 401);
}

#[test]
fn a_killed_x_server_is_told_of_and_its_successor_found() {
    if !has_desktops("a_killed_x_server_is_told_of_and_its_successor_found", &[]) {
        return;
    }
    let mut desk = Desk::start(&[]);
    assert_eq!(wait(ask(&desk, "/screenshot")).0, 200);
    desk.screen.kill();
    for path in ["/screenshot", "/cursor_position"] {
        let (status, told) = wait(ask(&desk, path));
        let told: Value = serde_json::from_slice(&told).unwrap();
        let message = told["message"].as_str().unwrap();
        assert_eq!(status, 500, "{path}");
        assert!(message.starts_with("no X server at :"), "{message}");
    }
    assert_eq!(wait(ask(&desk, "/platform")), (200, b"Linux".to_vec()));
    let now = about(&desk);
    assert!(
        now["trouble"].as_str().unwrap().starts_with("no X server"),
        "{now}"
    );
    desk.screen.replace();
    eventually("screenshot", || {
        (wait(ask(&desk, "/screenshot")).0 == 200).then_some(())
    });
    assert!(
        desk.server.0.try_wait().unwrap().is_none(),
        "the server runs on"
    );
}

#[test]
fn a_frozen_x_server_is_waited_for_so_long_only() {
    if !has_desktops("a_frozen_x_server_is_waited_for_so_long_only", &[]) {
        return;
    }
    let desk = Desk::start(&[]);
    assert_eq!(wait(ask(&desk, "/screenshot")).0, 200);
    let xvfb = Pid::from_raw(desk.screen.xvfb.0.id() as i32).unwrap();
    kill_process(xvfb, Signal::STOP).unwrap();
    let answers = wait(async {
        let three = [(); 3].map(|()| ask(&desk, "/screenshot"));
        futures::future::join_all(three).await
    });
    kill_process(xvfb, Signal::CONT).unwrap();
    for (status, told) in answers {
        let told = String::from_utf8(told).unwrap();
        assert_eq!(status, 500);
        assert!(told.contains("did not answer within 10 s"), "{told}");
    }
    assert_eq!(wait(ask(&desk, "/screenshot")).0, 200);
}
