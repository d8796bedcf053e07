"""Signs results, so that only results that were returned count as clicked."""

import hmac
import json
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from hashlib import sha256

from keras_lstm_dssm.data.click_lines import Pair

LIFETIME_SECONDS = 86_400
"""A result can be followed for a day after the search."""

_REMEMBERED = 100_000
_SIGNATURE_BYTES = sha256().digest_size


class TokenError(ValueError):
    """Raised if a token is not one of this server, or is too old."""


class ClickTokens:
    """Makes a token for each result of a search, and reads it once.

    A token holds the query and the title, signed with a secret of this
    process: a browser can neither change them nor make up others, and the
    server stores nothing. The same search counts a title once.

    Args:
        lifetime: Seconds after which a token is too old.

    Example:
        >>> tokens = ClickTokens()
        >>> token = tokens.issue(tokens.new_search(), "bolt", "hex bolt")
        >>> tokens.redeem(token)
        Pair(query='bolt', document='hex bolt')
        >>> tokens.redeem(token)  # None: counted already
    """

    def __init__(self, lifetime: float = LIFETIME_SECONDS) -> None:
        self._secret = secrets.token_bytes(32)
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._redeemed: OrderedDict[bytes, None] = OrderedDict()

    @staticmethod
    def new_search() -> str:
        """Returns the random name of a search."""
        return secrets.token_urlsafe(9)

    def issue(self, search: str, query: str, title: str) -> str:
        """Returns the token of a result.

        Args:
            search: The name of the search, from `new_search`.
            query: The query.
            title: The title of the result.
        """
        payload = json.dumps([search, time.time(), query, title]).encode()
        return urlsafe_b64encode(self._signature(payload) + payload).decode()

    def redeem(self, token: str) -> Pair | None:
        """Returns the query and the title of a token, the first time.

        Raises:
            TokenError: The token is not one of this process, or too old.
        """
        try:
            raw = urlsafe_b64decode(token.encode("ascii"))
        except ValueError as error:
            raise TokenError("not a result of this server") from error
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise TokenError("not a result of this server; search again")
        _, issued, query, title = json.loads(payload)
        if time.time() - issued > self._lifetime:
            raise TokenError("the search is too old; search again")
        with self._lock:
            if signature in self._redeemed:
                return None
            self._redeemed[signature] = None
            if len(self._redeemed) > _REMEMBERED:
                self._redeemed.popitem(last=False)
        return Pair(query, title)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")
