"""The client of captioners behind an HTTP API, against a server that is started here."""

import socket
import threading

import pytest

from sightline.adapters.chat import ChatCaptioner, ChatError


def test_a_word_is_as_likely_as_its_pieces(server, picture):
    handler, url = server
    (said,) = ChatCaptioner(url, "mine", key="secret").say(picture)
    assert said.text == "A red ball."
    assert [(word.text, word.log_probability) for word in said.words] == [
        ("a", -0.5),
        ("red", -0.375),
        ("ball", -1.0),
    ]
    ((path, headers, asked),) = handler.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert asked["model"] == "mine"


def test_a_server_without_log_probabilities(server, picture):
    handler, url = server
    handler.with_log_probs = False
    (said,) = ChatCaptioner(url).say(picture)
    assert [word.log_probability for word in said.words] == [None] * 3


def test_a_server_that_says_one_at_a_time_is_asked_again(server, picture):
    handler, url = server
    assert len(ChatCaptioner(url).say(picture, samples=3, temperature=1.0)) == 3
    assert len(handler.asked) == 3
    assert len({asked["seed"] for _, _, asked in handler.asked}) == 3


def test_scores_of_words(server, picture):
    _, url = server
    captioner = ChatCaptioner(url)
    (said,) = captioner.say(picture)
    words = [(word.text, word.log_probability) for word in said.words]
    a, red, ball = captioner.scores(picture, words, samples=2)
    assert red == {"agreement": 1.0, "blank": 1.0, "log_probability": -0.375}
    assert ball["blank"] == 1.0
    assert a["blank"] == 0.0  # said of a blank, too


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"choices": [{"message": {}}]}'])
def test_what_is_no_answer_is_one_line(server, picture, content):
    handler, url = server
    handler.content = content
    with pytest.raises(ChatError) as error:
        ChatCaptioner(url).say(picture)
    assert "\n" not in str(error.value)


def test_a_redirect_is_not_followed(server, picture):
    handler, url = server
    handler.status, handler.location = 302, f"{url}/elsewhere"
    with pytest.raises(ChatError, match="answered 302"):
        ChatCaptioner(url, key="secret").say(picture)
    assert len(handler.asked) == 1


def test_a_server_that_speaks_no_http_is_one_line(picture):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends = threading.Thread(target=_greet, args=(listening,))
        ends.start()
        with pytest.raises(ChatError, match="no answer"):
            ChatCaptioner(f"http://127.0.0.1:{listening.getsockname()[1]}/v1").say(picture)
        ends.join()


def _greet(listening):
    connection, _ = listening.accept()
    with connection:
        connection.recv(1 << 16)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")


def test_errors_of_the_server(server, picture):
    handler, url = server
    handler.status = 503
    with pytest.raises(ChatError, match="answered 503"):
        ChatCaptioner(url).say(picture)
    with pytest.raises(ChatError, match="no answer"):
        ChatCaptioner("http://127.0.0.1:9/v1", seconds=2).say(picture)
