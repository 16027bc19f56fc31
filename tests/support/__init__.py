"""What several tests share: cases, random problems, a toy experiment. No test imports another test."""
