"""What other toolkits call a setting: a name from there is refused with the name that it has here."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN_AS: Mapping[str, str] = {
    name: meant
    for meant, names in {
        "training.patience": "early_stopping early_stopping_patience early_stop earlystopping stop_patience",
        "training.average": "average_checkpoints avg_checkpoints num_epoch_checkpoints keep_best_ckpts",
        "training.learning_rate": "lr initial_lr max_lr",
        "training.epochs": "max_epochs num_epochs n_epochs",
        "training.steps": "max_steps max_updates max_update train_steps",
        "training.batch_tokens": "max_tokens tokens_per_batch",
        "training.validate": "validation_freq valid_every validate_interval eval_every",
        "training.clip": "clip_norm clip_grad_norm max_grad_norm gradient_clipping",
        "training.warmup": "warmup_steps warmup_updates num_warmup_steps",
        "training.accumulate": "update_freq accum_steps batch_multiplier",
        "training.fine_tuning.frozen": "freeze frozen_layers freeze_layers trainable",
        "training.fine_tuning.unfreeze": "gradual_unfreezing thaw",
        "training.fine_tuning.old_share": "replay_share rehearsal experience_replay",
        "training.fine_tuning.base": "load_model pretrained finetune_from restore_file start_from init_from",
    }.items()
    for name in names.split()
}
"""By the last name of a setting there; a setting of that very name here comes first."""
