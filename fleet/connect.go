package fleet

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// errOtherCluster: another cluster answers.
var errOtherCluster = errors.New("another cluster answers")

// reconnect moves a client to another connection.
func reconnect(context.Context, *kates.Client, *rest.Config) error {
	return errOtherCluster // until the client can
}
