"""The token that a client sends."""

import tempfile
import unittest
from pathlib import Path

from endpoint_resolver import TokenFile


def sent(plugin):
    """The metadata and the error of a call."""
    calls = []
    plugin(None, lambda metadata, error: calls.append((tuple(metadata), error)))
    [call] = calls
    return call


class TokenFileTest(unittest.TestCase):
    def test_a_token_that_is_rotated_is_read_again(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "token")
            plugin = TokenFile(file)
            for token in ("first", "second"):
                file.write_text(f"{token}\n")
                self.assertEqual(sent(plugin), ((("authorization", f"Bearer {token}"),), None))

    def test_a_file_that_cant_be_read_is_named_and_its_content_is_not(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "token")
            for content in (None, b"secret\xff"):
                with self.subTest(content):
                    if content is not None:
                        file.write_bytes(content)
                    metadata, error = sent(TokenFile(file))
                    self.assertEqual(metadata, ())
                    self.assertIn(str(file), str(error))
                    self.assertNotIn("secret", str(error))


if __name__ == "__main__":
    unittest.main()
