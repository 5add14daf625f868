#!/usr/bin/env python3
"""Makes the stand-ins in files/: for each address that a task of tasks.json downloads from, a small
document of our own that the task's instruction and evaluator fit. OSWorld's own documents are not
read and nothing is taken from them but their names.

Texts and slides go through LibreOffice once, the expected ones too, so that nothing differs but what
the task asks for; tables do not, since it would lose their zoom and frozen rows. Needs python-docx, openpyxl, python-pptx, blake3 and soffice:

    python assets/x11/recipe.py

The contents are the same on every run, but LibreOffice's files carry times and so get new hashes.
"""

import json
import shutil
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import blake3
import docx
import openpyxl
import pptx
from docx.enum.text import WD_BREAK
from docx.oxml.ns import qn
from openpyxl.styles import Font
from pptx.util import Inches

HERE = Path(__file__).parent
CLOUD = "https://huggingface.co/datasets/xlangai/ubuntu_osworld_file_cache/resolve/main"
MAKERS = {}


def makes(task, *names):
    """The function below makes the files that the task downloads by these names."""

    def register(function):
        MAKERS[task] = (names, function)
        return function

    return register


# Texts for Writer.


def text(path, paragraphs, change=None):
    document = docx.Document()
    # The template's many styles are most of a small file.
    for style in list(document.styles):
        if not style.element.get(qn("w:default")):
            style.delete()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if change:
        change(document)
    document.save(path)


def split_run(paragraph, *parts):
    """Replaces the paragraph's text by runs; returns them."""
    paragraph.clear()
    return [paragraph.add_run(part) for part in parts]


@makes(
    "libreoffice_writer/0b17a146-2934-46c7-8727-73ff6b6483e8",
    "H2O_Factsheet_WA.docx",
    "H2O_Factsheet_WA_Gold.docx",
)
def h2o(before, after):
    paragraphs = [
        "H2O",
        "Water is clear, has no taste, and covers most of the Earth.",
        "It boils at 100 degrees and freezes at 0.",
    ]

    def subscript(document):
        split_run(document.paragraphs[0], "H", "2", "O")[1].font.subscript = True

    text(before, paragraphs)
    text(after, paragraphs, subscript)


@makes("libreoffice_writer/0e763496-b6bb-4508-a427-fad0b6c3e195", "Dublin_Zoo_Intro.docx")
def zoo(before):
    text(
        before,
        [
            "A day at the zoo",
            "The zoo lies in a large park and is home to some four hundred animals.",
            "Come early: the sea lions are fed at eleven.",
        ],
    )


@makes(
    "libreoffice_writer/3ef2b351-8a84-4ff2-8724-d86eae9b842e",
    "Constitution_Template_With_Guidelines.docx",
)
def constitution(before):
    text(
        before,
        [
            "Constitution of the Garden Club",
            "The club looks after the flowers in the square.",
            "Whoever likes flowers may join.",
        ],
    )


@makes(
    "libreoffice_writer/0810415c-bde4-4443-9047-d5f70165a697",
    "Novels_Intro_Packet.docx",
    "Novels_Intro_Packet_Gold.docx",
    "Novels_Intro_Packet_Gold_2.docx",
)
def novels(before, with_title, without_title):
    paragraphs = [
        "Three novels for the summer",
        "The first is about a lighthouse and a family that never gets there.",
        "The second follows a whale around the world.",
        "The third takes place on a single day in June.",
    ]

    def double(*which):
        def change(document):
            for number in which:
                document.paragraphs[number].paragraph_format.line_spacing = 2.0

        return change

    text(before, paragraphs)
    text(with_title, paragraphs, double(0, 1))
    text(without_title, paragraphs, double(1, 2))


@makes(
    "libreoffice_writer/72b810ef-4156-4d09-8f08-a0cf57e7cefe",
    "GEOG2169_Course_Outline_2022-23.docx",
    "GEOG2169_Course_Outline_2022-23_Gold.docx",
)
def course(before, after):
    paragraphs = [
        "Course outline: maps and rivers",
        "Every week we read a map and draw another.",
        "In the end we will have read maps and drawn others.",
    ]

    def strike(document):
        document.paragraphs[-1].runs[0].font.strike = True

    text(before, paragraphs)
    text(after, paragraphs, strike)


@makes(
    "libreoffice_writer/ecc2413d-8a48-416e-a3a2-d30106ca36cb", "Sample_Statutory_Declaration.docx"
)
def declaration(before):
    def pages(document):
        for part in ["Declaration", "Who declares", "What is declared", "Witnesses", "Signatures"]:
            if part != "Declaration":
                document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
            document.add_paragraph(part)

    text(before, [], pages)


@makes(
    "libreoffice_writer/e528b65e-1107-4b8c-8988-490e4fece599",
    "Geography_And_Magical_Realism.docx",
    "Geography_And_Magical_Realism_Gold.docx",
)
def capitals(before, after):
    paragraphs = [
        "a town where it rains for years",
        "people there keep umbrellas for the fish",
        "nobody finds that odd",
    ]
    text(before, paragraphs)
    text(after, [paragraph.title() for paragraph in paragraphs])


@makes(
    "libreoffice_writer/66399b0d-8fda-4618-95c4-bfc6191617e9",
    "Table_Of_Work_Effort_Instructions.docx",
    "Table_Of_Work_Effort_Instructions_Gold.docx",
)
def effort(before, after):
    paragraphs = ["Work effort", "Enter the hours of each day in the table below.", ""]
    text(before, paragraphs)
    text(after, paragraphs, lambda document: document.add_table(rows=5, cols=7))


@makes(
    "libreoffice_writer/bb8ccc78-479f-4a2f-a71e-d565e439436b",
    "The%20Wonders%20of%20Our%20Solar%20System.docx",
)
def planets(before):
    text(before, ["Eight planets go around the Sun.", "The third has tea."])


# Tables for Calc.


def table(path, rows, change=None):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    if change:
        change(sheet)
    book.save(path)


@makes(
    "libreoffice_calc/1e8df695-bd1b-45b3-b557-e7d599cf7597",
    "WeeklySales.xlsx",
    "6_WeeklySales_gt1.xlsx",
)
def profit(before, after):
    rows = [("Week", "Sales", "COGS"), (1, 500, 310), (2, 420, 275), (3, 610, 350), (4, 580, 345)]
    table(before, rows)
    table(after, [(*rows[0], "Profit")] + [(*row, row[1] - row[2]) for row in rows[1:]])


@makes(
    "libreoffice_calc/4188d3a4-077d-46b7-9c86-23e1a036f6c1",
    "Freeze_row_column2.xlsx",
    "Freeze_row_column2_gold.xlsx",
)
def freeze(before, after):
    rows = [("Street", "Trees")] + [(f"Street {n}", 3 * n % 17) for n in range(1, 61)]

    def header(sheet):
        sheet.freeze_panes = "A2"

    table(before, rows)
    table(after, rows, header)


@makes(
    "libreoffice_calc/1334ca3e-f9e3-4db8-9ca7-b4c653be7d17",
    "Zoom_Out_Oversized_Cells.xlsx",
    "Zoom_Out_Oversized_Cells_gold.xlsx",
)
def zoom(before, after):
    rows = [("Fruit", "Boxes"), ("Apples", 12), ("Pears", 7), ("Plums", 31)]

    def scale(percent):
        def change(sheet):
            sheet.sheet_view.zoomScale = sheet.sheet_view.zoomScaleNormal = percent
            sheet.sheet_view.tabSelected = True

        return change

    table(before, rows, scale(260))
    table(after, rows, scale(200))


@makes("libreoffice_calc/357ef137-7eeb-4c80-a3bb-0951f26a8aff", "Multiply_Time_Number.xlsx")
def earned(before):
    half = timedelta(hours=9, minutes=35)
    rows = [
        ("Name", "Hours", "Total hours", "Hourly rate", "Total earned"),
        ("Kim", half),
        ("Kim", half, 2 * half, 10),
    ]

    def hours(sheet):
        for cell in ["B2", "B3", "C3"]:
            sheet[cell].number_format = "[hh]:mm"

    table(before, rows, hours)


@makes(
    "libreoffice_calc/51b11269-2ca8-4b2a-9163-f21758420e78",
    "Arrang_Value_min_to_max.xlsx",
    "Arrang_Value_min_to_max_gold.xlsx",
)
def amounts(before, after):
    header = ("Date", "Payee", "Amount")
    rows = [
        ("Monday", "Baker", 14.5),
        ("Tuesday", "Florist", 32),
        ("Wednesday", "Bookshop", 9.9),
        ("Thursday", "Cinema", 21),
        ("Friday", "Grocer", 47.25),
    ]
    table(before, [header, *rows])
    table(after, [header, *sorted(rows, key=lambda row: row[2])])


@makes(
    "libreoffice_calc/3aaa4e37-dc91-482e-99af-132a612d40f3",
    "Export_Calc_to_CSV.xlsx",
    "Export_Calc_to_CSV.csv",
)
def export(before, after):
    rows = [("City", "Bridges"), ("Venice", 472), ("Pittsburgh", 446), ("Hamburg", 2500)]
    table(before, rows)
    after.write_text("".join(f"{city},{bridges}\n" for city, bridges in rows))


@makes(
    "libreoffice_calc/eb03d19a-b88d-4de4-8a64-ca0ac66f426b",
    "Students_Class_Subject_Marks.xlsx",
    "Students_Class_Subject_Marks_gold.xlsx",
)
def transpose(before, after):
    marks = [
        ("Subject", "Ada", "Ben", "Cleo", "Dan"),
        ("Maths", 9, 7, 8, 6),
        ("Music", 6, 9, 7, 8),
        ("Sports", 7, 8, 9, 10),
    ]

    def place(rows, row, column):
        return lambda sheet: [
            sheet.cell(row + down, column + across, value)
            for down, values in enumerate(rows)
            for across, value in enumerate(values)
        ]

    def both(sheet):
        place(marks, 2, 2)(sheet)
        place(list(zip(*marks)), 8, 2)(sheet)

    table(before, [("Marks",)], place(marks, 2, 2))
    table(after, [("Marks",)], both)


@makes(
    "libreoffice_calc/7efeb4b1-3d19-4762-b163-63328d66303b",
    "Order_Sales_Serial%23.xlsx",
    "Order_Sales_Serial%23_gold.xlsx",
)
def serial(before, after):
    header = ("Seq No.", "Order", "Boxes")
    orders = [("Tea", 4), ("Coffee", 2), ("Cocoa", 7), ("Honey", 1), ("Jam", 3)]
    table(before, [header, *((None, *order) for order in orders)])
    numbered = ((f"No. {number}", *order) for number, order in enumerate(orders, 1))
    table(after, [header, *numbered])


@makes(
    "libreoffice_calc/37608790-6147-45d0-9f20-1137bb35703d",
    "Employee_Roles_and_Ranks.xlsx",
    "Employee_Roles_and_Ranks_gold.xlsx",
)
def names(before, after):
    header = ("Employee", "First Name", "Last Name", "Rank")
    people = ["Ines Costa Captain", "Paul Weber Pilot", "Mira Novak Cook"]
    table(before, [header, *((person,) for person in people)])
    table(after, [header, *((person, *person.split()) for person in people)])


@makes(
    "multi_apps/7f35355e-02a6-45b5-b140-f0be698bcf85", "stock.xlsx", "result_gold.txt"
)
def median(before, after):
    table(before, [("Seed", "Price"), ("Basil", 10), ("Dill", 20), ("Mint",), ("Saffron", 60)])
    after.write_text("25\n")


# Slides for Impress.

def slides(path, contents, change=None):
    """`contents` are (title, lines) a slide."""
    show = pptx.Presentation()
    for title, lines in contents:
        # Title and content.
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(lines)
    if change:
        change(show)
    show.save(path)


@makes("libreoffice_impress/73c99fb9-f828-43ce-b87a-01dc07faa224", "109_4.pptx", "109_4_Gold.pptx")
def page(before, after):
    cover = ("A walk by the river", ["Seven kilometers, mostly flat"])
    slides(before, [cover, ("The way", ["From the mill"])])
    slides(after, [cover, ("The way", ["From the mill", "Page 1"])])


@makes(
    "libreoffice_impress/a097acff-6266-4291-9fbd-137af7ecd439", "Secrets-of-Monetizing-Video.pptx"
)
def video(before):
    slides(before, [("Films with the phone", ["Hold it still", "Tell a story"])])


@makes(
    "libreoffice_impress/5cfb9197-e72b-454b-900e-c06b0c802b40",
    "33_1.pptx",
    "33_1_Gold.pptx",
    "33_1_Gold_all_fonts.pptx",
)
def teams(before, after, other):
    contents = [
        ("Tournament", ["Four teams"]),
        ("Rules", ["Be fair"]),
        ("Place", ["The meadow"]),
        ("Results", []),
    ]

    def results(first_row):
        def change(show):
            slide = show.slides[-1]
            content = slide.placeholders[1].element
            content.getparent().remove(content)
            frame = slide.shapes.add_table(2, 4, Inches(1), Inches(2), Inches(8), Inches(1))
            for column, name in enumerate(first_row):
                frame.table.cell(0, column).text = name
                frame.table.cell(1, column).text = str(3 + column)

        return change

    slides(before, contents, results(["A", "B", "C", "D"]))
    for path in [after, other]:
        slides(path, contents, results(["T1", "T2", "T3", "T4"]))


@makes(
    "libreoffice_impress/ce88f674-ab7a-43da-9201-468d38539e4a", "AM_Last_Page_Template.pptx"
)
def upright(before):
    slides(before, [("Poster", ["Summer party in the garden"])])


@makes(
    "libreoffice_impress/edb61b14-a854-4bf5-a075-c8075c11293a", "24_8.pptx", "24_8_Gold.pptx"
)
def font(before, after):
    contents = [("Birds", ["In our street"]), ("Thank you", ["Questions are welcome"])]

    def times(show):
        for shape in show.slides[-1].placeholders:
            for paragraph in shape.text_frame.paragraphs:
                for run in paragraph.runs:
                    run.font.name = "Times New Roman"

    slides(before, contents)
    slides(after, contents, times)


# Pictures and scripts for the terminal. A picture needs no more than its name.

PHOTOS = [
    "monk252520thailand252520wat252520arun252520scaled25255B225255D.jpg",
    "hong-kong-china.jpg",
    "hk_group_photo.jpg",
    "us_3.png",
    "emnlp2023.jpg",
]


@makes("os/23393935-50c7-4a86-aeea-2b78fd089c5c", *PHOTOS)
def photos(*paths):
    for path in paths:
        path.write_text(f"{path.name}\n")


@makes("os/5ea617a3-0e86-4ba6-aab2-dac9aa2e8d57", "poster_party_night.webp")
def poster(before):
    before.write_text("Party tonight!\n")


def script(path, lines):
    path.write_text("#!/bin/bash\n" + lines.strip() + "\n")


@makes("os/5ced85fc-fa1a-4217-95fd-0fb530545ce2", "eval.sh")
def lines_check(check):
    script(
        check,
        r"""
expected='1<br/>
2<br/>
3<br/>'
for file in output.txt ~/output.txt ~/Desktop/output.txt; do
    if [ -f "$file" ] && [ "$(cat "$file")" = "$expected" ]; then
        echo "Success: The task has been completed correctly."
        exit
    fi
done
echo "Failure: no output.txt holds the lines."
""",
    )


@makes("os/6f56bf42-85b8-4fbb-8e06-6c44960184ba", "setup.sh", "eval.sh")
def copies(prepare, check):
    script(prepare, "echo hello >file1\nmkdir -p dir1 dir2 dir3")
    script(
        check,
        """
for dir in dir1 dir2 dir3; do
    if cmp -s file1 $dir/file1; then
        echo "Success: file1 exists in $dir."
    else
        echo "Failure: file1 is not in $dir."
    fi
done
""",
    )


@makes("os/37887e8c-da15-4192-923c-08fa390a176d", "setup.sh", "eval_20250703.sh")
def old_files(prepare, check):
    script(
        prepare,
        """
mkdir -p /tmp/test_files/old_files /tmp/test_files/new_files
cd /tmp/test_files || exit
for number in 1 2; do
    echo old >old_file$number.txt
    touch -d '30 days ago' old_file$number.txt
    echo new >new_file$number.txt
done
""",
    )
    script(
        check,
        """
cd /tmp/test_files || exit
packed=$(for file in old_files/*; do
    case $file in
    *.tar*|*.tgz) tar -tf "$file" ;;
    *.gz) basename "$file" .gz ;;
    esac
done | grep -o 'old_file[12][.]txt' | sort -u | wc -l)
if [ "$packed" = 2 ] && [ -f new_files/new_file1.txt ] && [ -f new_files/new_file2.txt ] &&
    [ -z "$(find . -name '*.txt' -not -path './new_files/*')" ]; then
    echo "SUCCESS: The task was completed correctly."
else
    echo "FAILURE: $packed of 2 old files are packed; new files: $(ls new_files)"
fi
""",
    )


@makes("os/4d117223-a354-47fb-8b45-62ab1390a95f", "setup.sh", "eval.sh")
def permissions(prepare, check):
    script(
        prepare,
        """
mkdir -p testDir/inner
touch testDir/{one,two} testDir/inner/three
chmod 600 testDir/one
chmod 666 testDir/two
chmod 755 testDir/inner/three testDir/inner
""",
    )
    script(
        check,
        """
wrong=$(find testDir -type f -not -perm 644; find testDir -type d -not -perm -700)
if [ -z "$wrong" ]; then
    echo "All files have the correct permissions."
else
    echo "Wrong permissions: $wrong"
fi
""",
    )


@makes("os/5c1075ca-bb34-46a3-a7a0-029bd7463e79", "setup.sh", "eval.sh")
def failed_notebooks(prepare, check):
    script(
        prepare,
        """
mkdir -p test_environment/{spring,summer/june}
cd test_environment || exit
touch first_failed.ipynb first.ipynb spring/second_failed.ipynb spring/notes.txt
touch summer/june/third_failed.ipynb summer/june/third.ipynb
""",
    )
    script(
        check,
        """
cd test_environment/fails 2>/dev/null && found=$(find . -type f | sort)
expected='./first_failed.ipynb
./spring/second_failed.ipynb
./summer/june/third_failed.ipynb'
if [ "$found" = "$expected" ]; then
    echo "Evaluation successful."
else
    echo "Evaluation failed: $found"
fi
""",
    )


# Texts for the editor.


@makes(
    "vs_code/0ed39f63-6049-43d4-ba4d-5fa2fe04a951",
    "vscode_replace_text.txt",
    "vscode_replace_text_gold.txt",
)
def replace(before, after):
    words = "This text is a text.\nIt is not the last text of its kind.\n"
    before.write_text(words)
    after.write_text(words.replace("text", "test"))


@makes("vs_code/ec71221e-ac43-46f9-89b8-ee7d80f7e1c5", "test.py", "test_gold.py")
def indent(before, after):
    lines = ["def greet():\n", *(f"print('hello {number}')\n" for number in range(1, 10))]
    before.write_text("".join(lines) + "\n\ngreet()\n")
    after.write_text("".join([lines[0], *(f"\t{line}" for line in lines[1:])]) + "\n\ngreet()\n")


# The file cache.


def through_libreoffice(paths, profile):
    """Rewrites office documents as LibreOffice saves them."""
    for suffix in [".docx", ".pptx"]:
        chosen = [path for path in paths if path.suffix == suffix]
        for folder in sorted({path.parent for path in chosen}):
            converted = folder / "converted"
            command = ["soffice", "--headless", f"-env:UserInstallation=file://{profile}"]
            command += ["--convert-to", suffix[1:], "--outdir", converted]
            command += [path for path in chosen if path.parent == folder]
            subprocess.run(command, check=True, capture_output=True)
            for path in converted.iterdir():
                path.replace(folder / path.name)
            converted.rmdir()


def main():
    files, cache = {}, HERE / "files"
    shutil.rmtree(cache, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        paths = {}
        for task, (names, make) in MAKERS.items():
            folder = scratch / task
            folder.mkdir(parents=True)
            made = [folder / unquote(name) for name in names]
            make(*made)
            paths |= {f"{CLOUD}/{task}/{name}": path for name, path in zip(names, made)}
        through_libreoffice(paths.values(), scratch / "profile")
        for url, path in sorted(paths.items()):
            content = path.read_bytes()
            name = blake3.blake3(content).hexdigest()
            blob = cache / "blobs" / name[:2] / name
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            files[url] = {"blake3": name, "bytes": len(content)}
    (cache / "manifest.json").write_text(json.dumps({"files": files}, indent=2) + "\n")


if __name__ == "__main__":
    main()
