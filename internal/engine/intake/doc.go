// Package intake decides what is held of what a server sent: whether an object is one that was
// asked for ([Intake.Checked]), whether it is selected ([Intake.Matches], [Intake.JudgeWrite]), and
// in which form it is held ([Intake.TransformNew]). An [Intake] never changes. It holds no objects.
package intake
