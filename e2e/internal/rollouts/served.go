package rollouts

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// served repeats a request while the API server does not serve its kind yet: a CRD is served a
// moment after it was written.
func served(ctx context.Context, request func() error) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := request()
		if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
}
