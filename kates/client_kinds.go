package kates

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/kinds"
)

// ErrIncompleteDiscovery is wrapped by the errors of look-ups that found no such kind while the
// server's discovery could not be read completely (an aggregated API that is down, a time-out, no
// rights): the server may serve the kind or not. It never means that a kind is absent;
// UnknownKindError does. If the server could not be reached, the text of such an error begins with
// that, and with the server's address.
var ErrIncompleteDiscovery = kinds.ErrIncompleteDiscovery

// UnknownKindError says that the server's complete discovery has no such kind. Its field Kind is
// the kind as it was asked for ("hosts.getambassador.io"). It unwraps to *meta.NoKindMatchError,
// so meta.IsNoMatchError holds. Use it with errors.As.
type UnknownKindError = kinds.UnknownKindError

// saysVersion reports whether a kind is written with its version: deployments.v1.apps.
func saysVersion(kind string) bool {
	gvr, _ := schema.ParseResourceArg(kind)
	return gvr != nil && looksLikeVersion(gvr.Version)
}

func looksLikeVersion(s string) bool {
	return len(s) > 1 && strings.HasPrefix(s, "v") && s[1] >= '0' && s[1] <= '9'
}
