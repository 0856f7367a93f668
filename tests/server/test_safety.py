"""Whom the server answers, and whom it refuses before anything is read."""

import httpx
import pytest
from fastapi import APIRouter

from sightline.errors import ConfigError
from sightline.server.app import create_app
from sightline.server.sections import Section
from sightline.server.settings import Settings

pytestmark = pytest.mark.anyio
TOKEN = "a-token-of-twenty-two"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def client(settings: Settings, *sections: Section, host: str = "127.0.0.1:8765"):
    transport = httpx.ASGITransport(
        create_app(settings, sections=sections), raise_app_exceptions=False
    )
    return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")


def section(**fields) -> Section:
    router = APIRouter()

    @router.post("/desk/said")
    async def said() -> dict[str, str]:
        return {"said": "yes"}

    @router.post("/desk/broken")
    async def broken() -> None:
        raise RuntimeError("secret")

    return Section("/desk", "Desk", router=router, **fields)


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "[::1]:1", "LOCALHOST:8765"])
async def test_this_machine_is_answered_by_its_own_names(host: str) -> None:
    async with client(Settings()) as ask:
        assert (await ask.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1.evil.example", "192.168.1.7", "", "localhost:x", "["]
)
async def test_another_name_is_refused_so_that_none_can_be_rebound(host: str) -> None:
    async with client(Settings()) as ask:
        answer = await ask.get("/healthz", headers={"Host": host})
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "application/problem+json"


async def test_names_can_be_added_and_an_open_server_knows_its_addresses() -> None:
    open_to_all = Settings(host="0.0.0.0", token=TOKEN, names=("photos.lan",))
    async with client(open_to_all) as ask:
        for host, status in (("photos.lan", 200), ("192.168.1.7:80", 200), ("evil.lan", 421)):
            assert (await ask.get("/healthz", headers={"Host": host})).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:8765"}, 200),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ],
)
async def test_pages_of_other_sites_are_refused(headers: dict[str, str], status: int) -> None:
    async with client(Settings(), section()) as ask:
        assert (await ask.post("/desk/said", headers=headers)).status_code == status


def test_an_open_server_needs_a_token_that_cannot_be_guessed() -> None:
    with pytest.raises(ConfigError, match="a token is needed"):
        Settings(host="192.168.1.7")
    with pytest.raises(ConfigError, match="too short"):
        Settings(token="1234")


async def test_without_the_token_nothing_is_answered_but_that_it_lives() -> None:
    settings = Settings(token=TOKEN)
    async with client(settings, section()) as ask:
        for path in ("/desk", "/openapi.json", "/assets/page.js", "/nowhere", "/?token=wrong"):
            answer = await ask.get(path)
            assert answer.status_code == 401, path
            assert TOKEN not in answer.text
        assert (await ask.get("/healthz")).status_code == 200
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert (await ask.get("/desk", headers=bearer)).status_code == 200
        wrong = {"Authorization": f"Bearer {TOKEN}x", "Cookie": "sightline_token=no; ;=;\x01"}
        assert (await ask.get("/desk", headers=wrong)).status_code == 401


async def test_a_browser_changes_the_token_of_the_address_for_a_cookie() -> None:
    async with client(Settings(token=TOKEN), section()) as ask:
        answer = await ask.get(f"/desk?token={TOKEN}&a=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/desk?a=1")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert (await ask.get("/desk")).status_code == 200  # with the cookie
        elsewhere = await ask.get(f"http://localhost//evil.example/?token={TOKEN}")
        assert elsewhere.headers["location"].startswith("/evil.example")


async def test_links_that_hold_a_secret_need_no_token() -> None:
    async with client(Settings(token=TOKEN), section(public=("/desk/said",))) as ask:
        assert (await ask.post("/desk/said")).status_code == 200
        assert (await ask.post("/desk/broken")).status_code == 401


async def test_a_path_that_needs_no_token_gives_none_away() -> None:
    async with client(Settings(token=TOKEN), section(public=("/desk",))) as ask:
        for path in ("/healthz", "/desk"):
            answer = await ask.get(f"{path}?token=wrong")
            assert answer.status_code == 200
            assert TOKEN not in str(answer.headers)


async def test_every_answer_tells_browsers_what_may_run() -> None:
    async with client(Settings(), section()) as ask:
        for path in ("/desk", "/assets/page.js", "/nowhere", "/healthz"):
            policy = (await ask.get(path)).headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert "unsafe" not in policy
        page = (await ask.get("/desk")).text
        assert "<script>" not in page
        assert "style=" not in page


async def test_errors_are_one_problem_object_and_tell_nothing() -> None:
    async with client(Settings(), section()) as ask:
        for method, path, status in (
            ("GET", "/nowhere", 404),
            ("GET", "/desk/said", 405),
            ("POST", "/desk/broken", 500),
        ):
            answer = await ask.request(method, path)
            assert answer.status_code == status
            assert set(answer.json()) == {"type", "title", "status", "detail", "message"}
            assert "secret" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/settings.py",
        "/assets//etc/passwd",
        "/assets/shell.html",
        "/../../etc/passwd",
    ],
)
async def test_no_path_of_the_disk_can_be_read(path: str) -> None:
    async with client(Settings()) as ask:
        assert (await ask.get(path)).status_code == 404
