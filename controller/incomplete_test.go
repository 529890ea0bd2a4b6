package controller_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestARunThatEndsWithoutASnapshotSaysWhatWasMissing(t *testing.T) {
	const said = `level=INFO msg="ended without one complete snapshot" controller=test waiting="`
	var out bytes.Buffer
	inWorld(t, func(w *world) {
		w.Dynamic.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(secrets.GroupResource(), "", errors.New("no"))
		})
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		<-time.After(time.Minute)
		r.stop()
		synctest.Wait() // a stream may be logging
		assert.Equal(t, 1, bytes.Count(out.Bytes(), []byte(said+`incomplete: query \"Secrets\" (Secret): forbidden: `)), &out)

		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		require.NoError(t, r.Run(ctx))
		synctest.Wait() // a stream may be logging
		assert.Equal(t, 2, bytes.Count(out.Bytes(), []byte(said)), "cancelled before it could watch: %s", &out)
	}, kates.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	out.Reset()
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		run(w, func(context.Context, *app) (controller.Result, error) { return controller.Done, nil }, bySecret).stop()
		synctest.Wait()
		assert.NotContains(t, out.String(), "ended without")
	}, kates.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
}
