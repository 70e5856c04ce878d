"""The page of `recurra serve` in a browser, as a reader uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import IMAGE, LEVELS


def field(page: Page) -> Locator:
    return page.locator(".field textarea, .field input").first


def answer(page: Page) -> Locator:
    return page.get_by_role("region", name="Answer").first


def open_tab(page: Page) -> Locator:
    return page.get_by_role("tab", selected=True).first


def panel(page: Page) -> Locator:
    return page.get_by_role("tabpanel").first


def ask(page: Page, text: str) -> None:
    field(page).fill(text)
    page.keyboard.press("Enter")


def test_a_run_is_shown_with_what_it_reached_and_answers_a_sample(page: Page) -> None:
    page.goto("/?run=translation")
    expect(page).to_have_title("translation · recurra")
    expect(page.get_by_label("Run", exact=True)).to_have_value("translation")
    expect(page.locator(".described")).to_contain_text("attention")
    expect(page.locator(".facts").first).to_contain_text("parameters")
    expect(field(page)).not_to_have_value("")
    expect(answer(page)).to_contain_text("answered in")


def test_the_score_that_chose_the_weights_is_the_headline(page: Page) -> None:
    page.goto("/?run=translation-blind")
    expect(page.locator(".facts .headline")).to_have_text("exact match1")
    expect(page.locator(".facts > div").first).to_have_text("exact match1")
    baselines = """(all) => all.map((each) => {
      const mark = document.createElement("span");
      mark.style.display = "inline-block"; // without content it stands on the line
      each.append(mark);
      const { bottom } = mark.getBoundingClientRect();
      mark.remove();
      return Math.round(bottom);
    })"""
    found = page.locator(".facts").first.locator("dt, dd").evaluate_all(baselines)
    assert len(found) > 2
    assert len({*found}) == 1


def test_a_page_whose_samples_are_all_long_opens_with_the_shortest_answered(page: Page) -> None:
    samples = json.dumps({"samples": ["the cat " * 60, "the dog " * 50]})
    page.route("**/samples", lambda route: route.fulfill(body=samples, content_type="application/json"))
    page.goto("/?run=tags")
    expect(field(page)).to_have_value("the dog " * 50)
    expect(answer(page)).to_contain_text("answered in")


def test_settings_that_change_nothing_are_hidden(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    page.get_by_text("More settings").click()
    expect(page.get_by_label("width", exact=True)).to_be_visible()
    expect(page.get_by_label("coverage penalty")).to_be_visible()
    expect(page.get_by_label("temperature")).to_be_hidden()
    page.get_by_label("search", exact=True).select_option("sampling")
    expect(page.get_by_label("temperature")).to_be_visible()
    expect(page.get_by_label("width", exact=True)).to_be_hidden()
    page.goto("/?run=translation-blind&input=the+dog")  # it has no attention to cover its source
    expect(page.get_by_label("coverage penalty")).to_have_count(0)


def test_there_is_no_room_for_more_settings_where_there_are_none(page: Page) -> None:
    page.goto("/?run=levels")
    expect(page.get_by_label("horizon")).to_be_visible()
    expect(page.locator(".settings-foot")).to_be_hidden()
    page.get_by_label("horizon").fill("3")
    expect(page.get_by_role("button", name="Reset settings")).to_be_visible()


def test_samples_of_numbers_stand_two_in_a_row_on_a_phone(page: Page) -> None:
    samples = json.dumps({"samples": [[[step] * 12 for step in range(20)]] * 4})
    page.route("**/samples", lambda route: route.fulfill(body=samples, content_type="application/json"))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/?run=levels&input=[[1],[2],[3]]")
    expect(page.locator(".chip").first).to_have_text("20 steps of 12 numbers")
    tops = page.locator(".chip").evaluate_all("all => all.map((chip) => chip.getBoundingClientRect().top)")
    assert tops[0] == tops[1] < tops[2] == tops[3]
    cut = "all => all.some((chip) => chip.scrollWidth > chip.clientWidth || chip.scrollHeight > chip.clientHeight)"
    assert not page.locator(".chip").evaluate_all(cut)


def test_the_head_of_the_page_is_one_line_on_a_small_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/?run=translation&input=the+dog")
    compare = page.get_by_role("button", name=re.compile("^Compare"))
    expect(compare).to_be_visible()
    buttons = [compare, page.get_by_role("button", name="Copy link"), page.get_by_role("button", name="Dark")]
    boxes = [each.bounding_box() for each in (page.locator(".brand"), *buttons)]
    assert len({round(box["y"] + box["height"] / 2) // 4 for box in boxes if box is not None}) == 1


def test_the_run_beside_it_of_the_same_task_and_vocabulary_is_offered_for_comparison(page: Page) -> None:
    page.goto("/?run=translation-blind&input=the+dog")
    page.get_by_role("button", name="Compare with translation", exact=True).click()
    expect(page.locator(".pane").nth(1).get_by_role("region", name="Answer")).to_contain_text("le chien")


def test_what_is_typed_is_answered_without_another_key(page: Page) -> None:
    page.goto("/?run=translation")
    field(page).fill("the dog")
    expect(answer(page)).to_contain_text("le chien")
    expect(page).to_have_url("/?run=translation&input=the+dog")
    expect(page.get_by_role("status").filter(has_text="Answer: le chien")).to_have_count(1)


def test_samples_that_arrive_late_do_not_change_a_field_that_someone_is_in(page: Page) -> None:
    held: list[Route] = []
    page.route("**/samples", lambda route: held.append(route))
    with page.expect_request("**/samples"):
        page.goto("/?run=translation")
    field(page).click()
    page.wait_for_function("() => document.activeElement.matches('.field *')")
    held[0].fulfill(body=json.dumps({"samples": ["the cat"]}), content_type="application/json")
    expect(page.get_by_role("group", name="Samples").get_by_role("button", name="the cat")).to_be_visible()
    expect(field(page)).to_have_value("")
    page.keyboard.type("the dog")
    expect(answer(page)).to_contain_text("le chien")
    expect(field(page)).to_have_value("the dog")


def test_what_the_model_has_never_seen_is_named_under_the_answer(page: Page) -> None:
    page.goto("/?run=translation")
    ask(page, "the Cat")
    expect(answer(page)).to_contain_text("Not in the vocabulary, read as <unk>: “Cat”")
    ask(page, "the cat")
    expect(answer(page)).not_to_contain_text("Not in the vocabulary")
    page.goto("/?run=tags&input=the+Zebra")
    expect(answer(page)).to_contain_text("Not in the vocabulary, read as <unk>: “zebra”")
    expect(answer(page).locator(".under li")).to_have_count(2)
    expect(answer(page).locator(".tag")).to_have_count(2)
    page.goto("/?run=text&input=one+Two")
    expect(answer(page)).to_contain_text("Not in the vocabulary, read as <unk>: “T”")


def test_a_sample_fills_the_input(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    page.get_by_role("group", name="Samples").get_by_role("button", name="a cat").click()
    expect(field(page)).to_have_value("a cat")
    expect(answer(page)).to_contain_text("un chat")


def test_the_weight_of_the_cell_that_is_pointed_at_is_said(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    heat_map = panel(page).get_by_role("img", name="Where it looked: le looked at most")
    said = panel(page).locator(".said")
    expect(said).to_contain_text("Point at a cell")
    heat_map.hover(position={"x": 5, "y": 5})
    expect(said).to_have_text(re.compile(r"le ← the: [01]\.\d\d"))
    page.mouse.move(0, 0)
    expect(said).to_contain_text("Point at a cell")
    panel(page).get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile(r"le ← dog: [01]\.\d\d"))


def test_the_search_plays_to_its_end_and_its_step_is_in_the_address(page: Page) -> None:
    page.clock.install(time=0)
    page.goto("/?run=translation&input=the+dog&tab=tree&tree.step=1")
    slider = panel(page).get_by_role("slider", name="Step of the search")
    expect(slider).to_have_value("1")
    page.clock.pause_at(3_600_000)
    panel(page).get_by_role("button", name="Play").click()
    expect(slider).to_have_value("2")
    expect(panel(page).get_by_role("button", name="Pause")).to_be_visible()
    page.clock.run_for(1500)
    expect(slider).to_have_value("3")
    expect(page).to_have_url("/?run=translation&input=the+dog&tab=tree&tree.step=3")
    page.clock.run_for(10_000)
    expect(panel(page).get_by_role("button", name="Play")).to_be_visible()
    expect(slider).to_have_value(str(slider.get_attribute("max")))
    expect(page).to_have_url("/?run=translation&input=the+dog&tab=tree")  # its end is what is shown at first


def test_another_answer_of_the_search_is_explained_when_it_is_chosen(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    second = answer(page).get_by_role("button").nth(1)
    expect(second).to_be_visible()
    second.click()
    expect(page).to_have_url("/?run=translation&input=the+dog&best=2")
    expect(answer(page).get_by_role("button").nth(1)).to_be_focused()
    expect(panel(page).get_by_role("img", name="Where it looked:")).to_be_visible()
    field(page).fill("a dog")
    expect(page).to_have_url("/?run=translation&input=a+dog")


def test_another_run_answers_the_same_and_back_leads_back(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    page.get_by_label("Run", exact=True).focus()
    page.get_by_label("Run", exact=True).select_option("tags")
    expect(page).to_have_url("/?run=tags&input=the+dog")
    expect(page.get_by_label("Run", exact=True)).to_be_focused()
    expect(page.locator(".task")).to_have_text("tagging")
    expect(page.get_by_role("tab")).to_have_text(["What mattered", "Gates over time"])
    page.go_back()
    expect(page.locator(".task")).to_have_text("seq2seq")
    expect(answer(page)).to_contain_text("le chien")


def test_a_copied_link_shows_the_same(page: Page) -> None:
    page.goto("/?run=translation")
    ask(page, "a dog")
    page.get_by_label("width").fill("3")
    page.get_by_role("tab", name="How sure it was").click()
    expect(panel(page)).to_contain_text("un")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    expect(field(page)).to_have_value("a dog")
    expect(page.get_by_label("width")).to_have_value("3")
    expect(open_tab(page)).to_have_text("How sure it was")
    expect(answer(page)).to_contain_text("un chien")
    page.get_by_role("button", name="Reset settings").click()
    expect(page.get_by_label("width")).to_have_value("5")


def test_an_input_too_long_for_an_address_survives_back_and_loading_anew(page: Page) -> None:
    long = "the cat sleeps " * 150
    page.goto("/?run=tags&input=the")
    field(page).fill(long)
    expect(page).to_have_url("/?run=tags")
    page.get_by_role("tab", name="What mattered").focus()
    page.keyboard.press("End")
    expect(page).to_have_url("/?run=tags&tab=gates")
    page.go_back()
    expect(open_tab(page)).to_have_text("What mattered")
    expect(field(page)).to_have_value(long)
    page.reload()
    expect(field(page)).to_have_value(long)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied, without the long input")).to_be_visible()


def test_a_link_to_a_run_that_is_not_here_says_so(page: Page) -> None:
    page.goto("/?run=lost")
    expect(page.get_by_role("alert").filter(has_text="There is no run “lost” here")).to_be_visible()
    expect(page.locator(".pane")).to_have_count(1)


def test_two_runs_stand_side_by_side_and_read_the_same(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog")
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url("/?run=translation&input=the+dog&2.run=translation-blind")
    panes = page.locator(".pane")
    panes.nth(1).locator("textarea").fill("a cat")
    for number in range(2):
        expect(panes.nth(number).locator("textarea")).to_have_value("a cat")
        expect(panes.nth(number).get_by_role("region", name="Answer")).to_contain_text("un chat")
    panes.nth(0).get_by_role("button", name="Remove").click()
    expect(panes).to_have_count(1)
    expect(page).to_have_url("/?run=translation-blind&input=a+cat")


def test_a_run_without_attention_has_no_tab_for_where_it_looked(page: Page) -> None:
    page.goto("/?run=translation-blind&input=the+dog&tab=attention")
    expect(open_tab(page)).to_have_text("How sure it was")
    expect(page.get_by_role("tab")).to_have_text(
        ["How sure it was", "What mattered", "How it searched", "Gates over time", "Gates while it wrote"]
    )


def test_greedy_search_asks_for_one_answer_whatever_was_asked_of_a_beam(page: Page) -> None:
    page.goto("/?run=translation&input=the+dog&tab=tree&decoding.best=2")
    expect(answer(page).get_by_role("button")).to_have_count(2)
    page.get_by_label("search", exact=True).select_option("greedy")
    expect(answer(page).get_by_role("button")).to_have_count(0)
    expect(panel(page)).to_have_text("This search is greedy: only a beam has steps to show. Choose beam above.")
    expect(page).to_have_url("/?run=translation&input=the+dog&decoding.search=greedy&tab=tree")


def test_what_a_server_that_was_away_did_not_answer_is_asked_again(page: Page) -> None:
    def go_away() -> None:
        page.evaluate("() => { window.kept ??= fetch; window.fetch = async () => { throw new TypeError('away') } }")

    def come_back() -> None:
        page.evaluate("() => { window.fetch = window.kept; dispatchEvent(new Event('focus')) }")

    page.goto("/?run=translation&input=the+dog")
    expect(panel(page).get_by_role("img")).to_be_visible()
    go_away()
    page.get_by_role("tab", name="How sure it was").click()
    expect(panel(page)).to_contain_text("The server does not answer")
    come_back()
    expect(panel(page)).to_contain_text("bits a token")
    go_away()
    field(page).fill("a dog")
    expect(page.get_by_role("alert").filter(has_text="The server does not answer")).to_be_visible()
    come_back()
    expect(answer(page)).to_contain_text("un chien")


def test_the_page_is_dark_where_the_machine_is_unless_the_reader_chose(page: Page) -> None:
    def background() -> str:
        found: str = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return found

    page.goto("/?run=tags")
    light = background()
    page.emulate_media(color_scheme="dark")
    page.reload()
    dark = background()
    assert sum(map(int, dark[4:-1].split(","))) < 200 < 600 < sum(map(int, light[4:-1].split(",")))
    button = page.get_by_role("button", name="Dark")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    assert background() == light
    page.reload()
    assert background() == light
    button.click()
    assert background() == dark


def test_a_word_that_looks_like_markup_is_shown_as_it_is(page: Page) -> None:
    page.goto("/?run=translation")
    ask(page, f"the {IMAGE}")
    expect(answer(page)).to_contain_text(IMAGE)
    for tab in page.get_by_role("tab").all():
        tab.click()
        expect(panel(page)).to_have_attribute("aria-busy", "false")
        expect(panel(page)).to_contain_text("<img")
    assert page.locator("main img, main [onerror]").count() == 0


def test_what_the_server_refuses_is_said_in_its_sentence(page: Page, refused: list[str]) -> None:
    page.goto("/?run=translation&input=the+dog")
    expect(answer(page)).to_contain_text("le chien")
    page.get_by_label("width").fill("0")
    expect(page.get_by_role("alert").filter(has_text="width")).to_be_visible()
    expect(page.get_by_role("tab").first).to_be_hidden()
    assert refused
    refused.clear()
    page.get_by_label("width").fill("2")
    expect(answer(page)).to_contain_text("le chien")
    expect(page.get_by_role("alert").filter(has_text="width")).to_be_hidden()


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    page.goto("/?run=translation&input=the+cat")
    expect(answer(page)).to_contain_text("le chat")
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("a dog")
    expect(answer(page)).to_contain_text("un chien")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.role") == "tab":
            break
    expect(open_tab(page)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(open_tab(page)).to_have_text("How sure it was")
    expect(open_tab(page)).to_be_focused()
    page.keyboard.press("End")
    expect(open_tab(page)).to_have_text("Gates while it wrote")
    expect(panel(page)).to_have_attribute("aria-busy", "false")
    page.keyboard.press("ArrowRight")
    expect(open_tab(page)).to_have_text("Where it looked")


def test_the_page_stays_at_hand_while_it_answers_and_draws_two_hundred_tokens(page: Page) -> None:
    page.goto("/?run=text&input=one&tab=gates")
    expect(panel(page)).to_have_attribute("aria-busy", "false")
    page.evaluate("""() => {
        let last = performance.now();
        window.longest = 0;
        const frame = (now) => {
            window.longest = Math.max(window.longest, now - last);
            last = now;
            requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }""")
    field(page).fill("one two " * 25)  # a token is a letter here
    expect(page).to_have_url(re.compile("(one.two.){25}"))
    expect(panel(page).get_by_role("img").first).to_be_visible()
    expect(panel(page)).to_have_attribute("aria-busy", "false")
    assert page.evaluate("window.longest") < 1000  # milliseconds without a chance to react, on a busy machine too


def test_the_command_for_a_program_says_what_was_asked(page: Page) -> None:
    page.goto("/?run=translation&input=it's")
    page.get_by_text("The same request from a program").click()
    expect(page.locator(".command code")).to_contain_text("""/api/runs/translation/predict' -H 'Content-Type: """)
    expect(page.locator(".command code")).to_contain_text(r"""{"inputs":["it'\''s"],"decoding":{"best":5}}""")
    page.locator(".command").get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl -s 'http://127.0.0.1:")


def test_a_task_of_ones_own_is_asked_answered_and_explained_in_the_kinds_of_its_views(page: Page) -> None:
    page.goto("/?run=speech&input=[[1,0],[1,0],[0,1]]")
    expect(answer(page).locator(".written .answer-large")).to_have_text("a b")
    expect(answer(page).get_by_role("button")).to_have_count(0)  # nothing is drawn by chance: it has no writer
    expect(page.get_by_role("tab")).to_have_text(["The best path over the frames", "Gates over time"])
    heat_map = panel(page).get_by_role("img").first
    expect(heat_map).to_be_visible()
    page.get_by_role("tab", name="Gates").click()
    expect(panel(page)).to_contain_text("lstm, layer 1 of 1")


def test_a_task_of_ones_own_that_answers_with_numbers_has_them_in_large(page: Page) -> None:
    page.goto("/?run=alike&input=the+cat%09a+cat")
    expect(answer(page).locator(".answer-large strong")).to_have_text(re.compile(r"^−?\d\.\d+$"))


@pytest.mark.parametrize(("run", "given"), [("text", "one"), ("colours", "[255,0,0]")])
def test_a_run_that_generates_offers_other_texts(page: Page, run: str, given: str) -> None:
    page.goto(f"/?run={run}&input={given}")
    expect(answer(page).get_by_role("button", name=re.compile("Another|Draw some"))).to_be_visible()


def test_enter_begins_a_line_only_in_a_text_that_the_run_goes_on_with(page: Page) -> None:
    for run, read in (("text", "one\n"), ("tags", "one")):
        page.goto(f"/?run={run}&input=one")
        field(page).press("End")
        field(page).press("Enter")
        expect(field(page)).to_have_value(read)


def test_two_texts_of_a_task_of_ones_own_are_typed_in_two_fields(page: Page) -> None:
    page.goto("/?run=alike")
    fields = page.get_by_role("textbox")
    expect(fields.first).not_to_have_value("")
    expect(answer(page)).to_contain_text("answered in")
    page.get_by_label("first", exact=True).fill("the dog")
    page.get_by_label("second", exact=True).fill("sun cat dog")
    expect(panel(page)).to_contain_text("sun")
    expect(page).to_have_url("/?run=alike&input=the+dog%09sun+cat+dog")


def test_the_table_that_a_forecaster_was_trained_on_can_be_pasted_or_opened(page: Page, tmp_path: Path) -> None:
    page.goto("/?run=levels")
    said = page.locator(".numbers-said")
    field(page).fill(LEVELS)
    expect(said).to_have_text("28 steps (left out: time, note)")
    expect(answer(page)).to_contain_text("answered in")
    (tmp_path / "levels.csv").write_text("".join(LEVELS.splitlines(keepends=True)[:11]))
    page.locator("input[type=file]").set_input_files(tmp_path / "levels.csv")
    expect(said).to_have_text("10 steps (left out: time, note)")


def test_a_row_of_the_table_that_a_vector_model_was_trained_on_can_be_pasted(page: Page) -> None:
    page.goto("/?run=colours")
    red = page.get_by_label("red", exact=True)
    expect(red).not_to_have_value("")
    page.evaluate("navigator.clipboard.writeText('red,green,blue,target\\n12,34,56,slate')")
    red.focus()
    page.keyboard.press("Control+V")
    for name, number in (("red", "12"), ("green", "34"), ("blue", "56")):
        expect(page.get_by_label(name, exact=True)).to_have_value(number)
    expect(page.locator(".numbers-said")).to_have_text("left out: target")
    expect(page).to_have_url(re.compile(r"input=%5B12%2C34%2C56%5D"))


def test_a_forecast_starts_where_its_origin_is_moved_to(page: Page) -> None:
    page.goto("/?run=levels&input=[[1],[2],[3],[4],[0],[1],[2],[3],[4],[0]]")
    page.get_by_label("horizon").fill("3")
    origin = page.get_by_role("slider", name="Forecast after step")
    expect(origin).to_have_value("10")
    chart = answer(page).locator(".chart")
    expect(chart).to_have_attribute("aria-label", re.compile("^level: 10 given steps and a forecast of 3"))
    origin.focus()
    with page.expect_request("**/predict") as asked:
        page.keyboard.press("ArrowLeft")
    assert json.loads(asked.value.post_data or "")["inputs"] == [[[1], [2], [3], [4], [0], [1], [2], [3], [4]]]
    expect(chart).to_have_attribute("aria-label", re.compile("^level: 9 given steps and a forecast of 3"))
    handle = chart.locator(".handle").bounding_box()
    assert handle is not None
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=3)
    page.mouse.up()
    expect(origin).not_to_have_value("9")
    known = int(origin.input_value())
    assert 2 <= known < 9
    expect(chart).to_have_attribute("aria-label", re.compile(f"^level: {known} given steps and a forecast of 3"))
    chart.press("End")
    expect(answer(page).locator(".pointed")).to_have_text(re.compile("^Step 13"))
    chart.press("ArrowLeft")
    expect(answer(page).locator(".came")).to_have_attribute("d", re.compile("^M"))
