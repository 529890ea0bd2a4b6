package translate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/kates-go/kates/kates"
)

// born is when the first object of a test is made. Each later one is an hour younger.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// snapshotOf makes a snapshot of manifests. The objects are as old as their order says, each an
// hour younger than the one before.
func snapshotOf(t require.TestingT, manifests ...string) *Snapshot {
	snap := &Snapshot{}
	at := born
	for _, text := range manifests {
		objects, err := kates.ParseManifests(text, kates.InScheme(Scheme()))
		require.NoError(t, err)
		for _, o := range objects {
			o.SetUID(types.UID(o.GetObjectKind().GroupVersionKind().Kind + "/" + name(o).String()))
			o.SetResourceVersion("7")
			o.SetCreationTimestamp(metav1.Time{Time: at})
			at = at.Add(time.Hour)
			put(t, snap, o)
		}
	}
	return snap
}

// service is the Service of that name in namespace prod.
func (s *Snapshot) service(called string) *corev1.Service {
	return s.Services[slices.IndexFunc(s.Services, func(o *corev1.Service) bool { return o.Namespace == "prod" && o.Name == called })]
}

func put(t require.TestingT, snap *Snapshot, o kates.Object) {
	switch o := o.(type) {
	case *networkingv1.IngressClass:
		snap.Classes = append(snap.Classes, o)
	case *networkingv1.Ingress:
		snap.Ingresses = append(snap.Ingresses, o)
	case *corev1.Service:
		snap.Services = slices.DeleteFunc(snap.Services, func(s *corev1.Service) bool { return name(s) == name(o) })
		snap.Services = append(snap.Services, o)
	case *corev1.Secret:
		snap.Secrets = append(snap.Secrets, o)
	case *discoveryv1.EndpointSlice:
		snap.Slices = append(snap.Slices, o)
	case *corev1.ConfigMap:
		snap.Settings = append(snap.Settings, o)
	case *corev1.Namespace:
		snap.Namespaces = append(snap.Namespaces, &kates.PartialObjectMetadata{ObjectMeta: o.ObjectMeta})
	case *gatewayv1.GatewayClass:
		snap.GatewayClasses = append(snap.GatewayClasses, o)
	case *gatewayv1.Gateway:
		snap.Gateways = append(snap.Gateways, o)
	case *gatewayv1.HTTPRoute:
		snap.Routes = append(snap.Routes, o)
	case *gatewayv1beta1.ReferenceGrant:
		snap.Grants = append(snap.Grants, o)
	default:
		require.Failf(t, "no such field", "%T", o)
	}
}

// problemsOf returns the problems of an object, as "reason: message".
func problemsOf(d *Desired, kind, namespacedName string) (all []string) {
	for _, r := range d.Reports {
		if s := sourceOf(r.Object); s.Kind == kind && name(r.Object).String() == namespacedName {
			for _, p := range r.Problems {
				all = append(all, p.Reason+": "+p.Message)
			}
		}
	}
	return all
}

// authority signs the certificates of tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t require.TestingT) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: born, NotAfter: born.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

// issue makes a chain and a key for hosts, valid for a year after born.
func (a *authority) issue(t require.TestingT, hosts ...string) (chain, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: born, NotAfter: born.AddDate(1, 0, 0), DNSNames: hosts}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	require.NoError(t, err)
	chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	return chain, keyPEM(t, private)
}

func keyPEM(t require.TestingT, key crypto.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// secret makes a Secret of namespace prod.
func secret(name string, chain, key []byte) *corev1.Secret {
	s := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{}}
	s.APIVersion, s.Kind, s.Namespace, s.Name = "v1", "Secret", "prod", name
	s.UID, s.ResourceVersion = types.UID("Secret/prod/"+name), "7"
	if chain != nil {
		s.Data[corev1.TLSCertKey] = chain
	}
	if key != nil {
		s.Data[corev1.TLSPrivateKeyKey] = key
	}
	return s
}
