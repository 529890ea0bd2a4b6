package translate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isTrue is a condition that holds. Its generation is set by observed, at the end.
func isTrue[T, R ~string](kind T, reason R) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: string(reason)}
}

// isFalse is a condition that does not hold, and why.
func isFalse[T, R ~string](kind T, reason R, format string, args ...any) metav1.Condition {
	return metav1.Condition{
		Type: string(kind), Status: metav1.ConditionFalse, Reason: string(reason), Message: message(format, args...),
	}
}

// holds reports whether a condition is true.
func holds(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue }

// observed sets the generation of an object that the conditions are about.
func observed(generation int64, conditions ...metav1.Condition) []metav1.Condition {
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// message is a text that fits into a condition, which has room for 32,768 bytes.
func message(format string, args ...any) string {
	const most = 2000
	text := fmt.Sprintf(format, args...)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
