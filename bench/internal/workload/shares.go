package workload

import (
	"context"
	"fmt"
	"hash/crc32"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FillEvenly creates the pods alone, as [Load.Fill] does, in so many other namespaces: replicas
// that share them by namespace need many more than there are replicas. The names differ in their
// first letters: the hashes of names that differ in their last ones alone are close together.
func (l *Load) FillEvenly(ctx context.Context, namespaces int) error {
	namespace := func(i int) string {
		name := strconv.Itoa(i % namespaces)
		return fmt.Sprintf("t%08x-tenant", crc32.ChecksumIEEE([]byte(name)))
	}
	err := parallel(ctx, namespaces, func(ctx context.Context, i int) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}
		_, err := l.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err == nil {
		err = parallel(ctx, l.pods, func(ctx context.Context, i int) error { return l.fillPodIn(ctx, namespace(i), i) })
	}
	if err != nil {
		return fmt.Errorf("fill the server: %w", err)
	}
	return nil
}
