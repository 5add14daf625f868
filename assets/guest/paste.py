"""Enters a text as if pasted. Runs on the guest; needs what pyautogui itself needs, no more.

The text is offered by this process for as long as somebody asks for it. Shift+Insert pastes in
terminals, too, where ctrl+v does not; some take the one selection for it, some the other. What was
copied or selected before is lost.
"""
import select
import time

import pyautogui
from Xlib import X, Xatom
from Xlib.display import Display
from Xlib.protocol.event import SelectionNotify

pyautogui.FAILSAFE = False

# How long nobody has to ask for it before it is withdrawn, seconds.
QUIET = 0.7


def paste(text):
    display = Display()
    owner = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    targets, utf8, plain = (
        display.intern_atom(name)
        for name in ("TARGETS", "UTF8_STRING", "text/plain;charset=utf-8")
    )
    for name in ("CLIPBOARD", "PRIMARY"):
        owner.set_selection_owner(display.intern_atom(name), X.CurrentTime)
    display.sync()
    pyautogui.hotkey("shift", "insert")
    end = time.monotonic() + QUIET
    while (left := end - time.monotonic()) > 0:
        if not display.pending_events():
            select.select([display], [], [], left)
            continue
        request = display.next_event()
        if request.type != X.SelectionRequest:
            continue
        answer = request.property or request.target
        if request.target == targets:
            request.requestor.change_property(answer, Xatom.ATOM, 32, [targets, utf8, plain])
        elif request.target in (utf8, plain):
            request.requestor.change_property(answer, request.target, 8, text.encode())
        else:
            answer = X.NONE
        request.requestor.send_event(
            SelectionNotify(
                time=request.time,
                requestor=request.requestor,
                selection=request.selection,
                target=request.target,
                property=answer,
            )
        )
        display.flush()
        end = time.monotonic() + QUIET
    display.close()


