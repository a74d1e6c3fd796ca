"""Names of files that may hold secrets; nothing of that name is shared by a rule."""

import re

_SECRET = re.compile(
    r"\.env(?:\..*)?|\.envrc|\.netrc|_netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.git-credentials|\.htpasswd"
    r"|\.(?:ssh|aws|gnupg|azure|kube|docker|gcloud)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519).*"
    r"|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|tfstate|ovpn)"
    r"|.*(?:secret|credential|password|passwd|private[-_]?key|api[-_]?key|access[-_]?token).*",
    re.IGNORECASE,
)


def may_be_secret(name: str) -> bool:
    """Return whether a file or directory of this name may hold secrets."""
    return _SECRET.fullmatch(name) is not None
